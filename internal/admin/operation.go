package admin

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
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

// Operations is a list of operations, sorted by name.
type Operations []Verb

// Named returns the operation with a name, or nil.
func (o Operations) Named(name string) Verb {
	if i := slices.IndexFunc(o, func(v Verb) bool { return v.Spec().Name == name }); i >= 0 {
		return o[i]
	}
	return nil
}

// All returns every operation.
func All() Operations { return slices.Clone(operations()) }

// operations lists the variables of this package that define returns, sorted by the operations'
// names. A test compares the list with the source.
var operations = sync.OnceValue(func() Operations {
	return Operations{
		ApplicationBlock, ApplicationDelete, ApplicationList, ApplicationMerge, ApplicationPause,
		ApplicationResume, ApplicationRevoke, ApplicationShow, ApplicationSplit, ApplicationUnblock,
		AttemptBundle, AttemptExplain, AttemptList, AttemptShow,
		AuditCheckpointNew, AuditList, AuditProve, AuditShow, AuditSinks,
		ClientAdd, ClientDelete, ClientList, ClientPolicyShow, ClientRotateSecret, ClientShow,
		EventsList, EventsTest,
		GrantCounted, PauseEnd, GrantFinish, GrantList, GrantNarrow, GrantPause, GrantPauses, GrantResume,
		GrantRevoke, HelperRevoke, GrantRevokeMany, GrantShow,
		GroupAdd, GroupDelete, GroupList, GroupRemove, GroupShow,
		HealthShow,
		KeysList, KeysRevoke, KeysRotate,
		MailTest,
		ProposalAccept, ProposalDecline, ProposalList, ProposalShow,
		ProviderList, ProviderShow,
		ResourceAccept, ResourceAdd, ResourceList, ResourceRemove, ResourceSet, ResourceShow, ResourceTool,
		ResourceTools,
		RuleList, RuleRemove, RuleSet,
		TokenInspect,
		TrustAdd, TrustDisable, TrustEnable, TrustIssueAdd, TrustIssueList, TrustIssueRemove, TrustLinkTo,
		TrustList, TrustRemove, TrustShow, TrustTest, TrustUnlink,
		UserAdd, UserDelete, UserDisable, UserEnable, UserGroups, UserIdentities, UserInvite, UserLinks,
		UserLinksWithdraw, UserList, UserPasswd, UserRecover, UserSessions, UserSessionsEnd, UserSetMail,
		UserSetRole, UserShow, UserWays, UserWaysRemove,
	}
})

// define returns an operation.
func define[In, Out any](s Spec, do func(*Service, context.Context, In) (Out, error)) Operation[In, Out] {
	return Operation[In, Out]{s, do}
}
