package admin

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Spec describes an operation and who may use it.
type Spec struct {
	// Name is the noun and verb of the command: "user disable".
	Name string
	// Method and Path are those in the HTTP API, relative to its root: POST, /users/{name}/disable.
	// Each {field} of the path is a field of the input. The other fields form the query of a GET
	// request, or the body.
	Method, Path string
	// Summary is a sentence without a period. Details is for manuals, and may be empty.
	Summary, Details string
	// Roles may use the operation, in addition to administrators.
	Roles []Role
	// Fresh requires a user to have authenticated recently, because the operation cannot be undone
	// or gives access.
	Fresh bool
	// Takes marks an operation that takes access away from users or programs.
	Takes bool
	// Early marks an operation whose object may not exist yet.
	Early bool
	// Secret marks an operation whose output contains a secret that is shown once.
	Secret bool
	// Reads marks an operation that changes nothing but does not use GET, because its input must
	// not be in a URL.
	Reads bool
}

// Changes reports whether the operation changes anything.
func (s Spec) Changes() bool { return s.HasBody() && !s.Reads }

// HasBody reports whether the input outside the path is a body rather than a query.
func (s Spec) HasBody() bool { return s.Method != "GET" }

// Noun returns the first word of the name.
func (s Spec) Noun() string {
	noun, _, _ := strings.Cut(s.Name, " ")
	return noun
}

// Permits reports whether a role may use the operation.
func (s Spec) Permits(r Role) bool { return r == Administrator || slices.Contains(s.Roles, r) }

// Verb is an operation whose types are known only at run time.
type Verb interface {
	Spec() Spec
	// Input and Output are struct types.
	Input() reflect.Type
	Output() reflect.Type
	// run takes pointers to an input and an output.
	run(ctx context.Context, s *Service, in, out any) error
}

// Operation is a verb with an input and an output. Both are structs that are encoded directly as
// JSON.
type Operation[In, Out any] struct {
	spec Spec
	do   func(*Service, context.Context, In) (Out, error)
}

// None is the input of operations without input.
type None struct{}

// Do calls the operation. It returns the errors of this package. Any other error is an internal
// error.
func (o Operation[In, Out]) Do(ctx context.Context, c Caller, in In) (Out, error) {
	var out Out
	err := c.Call(ctx, o, &in, &out)
	return out, err
}

// Spec implements [Verb].
func (o Operation[In, Out]) Spec() Spec { return o.spec }

// Input implements [Verb].
func (o Operation[In, Out]) Input() reflect.Type { return reflect.TypeFor[In]() }

// Output implements [Verb].
func (o Operation[In, Out]) Output() reflect.Type { return reflect.TypeFor[Out]() }

func (o Operation[In, Out]) run(ctx context.Context, s *Service, in, out any) error {
	if err := checkTexts("", reflect.ValueOf(in)); err != nil {
		return err
	}
	done, err := o.do(s, ctx, *in.(*In))
	*out.(*Out) = done
	return err
}

// Caller runs operations. in and out are pointers to the input and output of the verb.
type Caller interface {
	Call(ctx context.Context, v Verb, in, out any) error
}

// all holds the operations of this package, in the order of its files.
var all []Verb

// All returns every operation, sorted by name.
func All() []Verb {
	return slices.SortedFunc(slices.Values(all), func(a, b Verb) int {
		return strings.Compare(a.Spec().Name, b.Spec().Name)
	})
}

// define declares an operation. It panics if two operations have the same name or path.
func define[In, Out any](s Spec, do func(*Service, context.Context, In) (Out, error)) Operation[In, Out] {
	for _, v := range all {
		if o := v.Spec(); o.Name == s.Name || o.Method == s.Method && o.Path == s.Path {
			panic(fmt.Sprintf("admin: %s and %s are one", o.Name, s.Name))
		}
	}
	o := Operation[In, Out]{s, do}
	all = append(all, o)
	return o
}
