package admin

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Spec says what an operation is called, and who may use it.
type Spec struct {
	// Name is noun and verb, as the command has them: "user disable".
	Name string
	// Method and Path are those of the HTTP API, below its root: POST, /users/{name}/disable. Each {field}
	// of the path is a field of the input; the other fields are the query of a GET, or else the body.
	Method, Path string
	// Summary is a sentence without a full stop; Details are for manuals, "" for none.
	Summary, Details string
	// Roles may use it beside administrators.
	Roles []Role
	// Fresh: it cannot be undone, or gives access, so a person has to have proved who they are a short
	// while ago.
	Fresh bool
	// Takes: it takes something away from people or programs that have it.
	Takes bool
	// Early: its object may not exist yet.
	Early bool
	// Secret: the output holds a secret, which is shown once.
	Secret bool
	// Reads: it changes nothing though its method is not GET, since its input has no place in a URL.
	Reads bool
}

// Changes reports whether the operation changes anything.
func (s Spec) Changes() bool { return s.HasBody() && !s.Reads }

// HasBody reports whether the input that is not in the path is a body, and not a query.
func (s Spec) HasBody() bool { return s.Method != "GET" }

// Noun is the first word of the name.
func (s Spec) Noun() string {
	noun, _, _ := strings.Cut(s.Name, " ")
	return noun
}

// Permits reports whether a role may use it.
func (s Spec) Permits(r Role) bool { return r == Administrator || slices.Contains(s.Roles, r) }

// Verb is an operation whose types are known at run time only.
type Verb interface {
	Spec() Spec
	// Input and Output are struct types.
	Input() reflect.Type
	Output() reflect.Type
	// run takes pointers to an input and an output.
	run(ctx context.Context, s *Service, in, out any) error
}

// Operation is a verb with an input and an output, which are structs that are JSON as they are.
type Operation[In, Out any] struct {
	spec Spec
	do   func(*Service, context.Context, In) (Out, error)
}

// None is the input of an operation that has none.
type None struct{}

// Do has the operation carried out. Errors: those of this package, and others, which are faults.
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

// Caller carries operations out. In and out are pointers to the input and output of the verb.
type Caller interface {
	Call(ctx context.Context, v Verb, in, out any) error
}

// all are the operations of this package, in the order of its files.
var all []Verb

// All returns every operation, by name.
func All() []Verb {
	return slices.SortedFunc(slices.Values(all), func(a, b Verb) int {
		return strings.Compare(a.Spec().Name, b.Spec().Name)
	})
}

// define declares an operation. Two of one name or one path are a mistake of ours.
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
