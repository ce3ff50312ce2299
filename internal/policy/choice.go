package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Question is the question of a consent page: the requested scopes, and those among them that the
// user has already allowed, which are not asked again.
type Question struct {
	Resource storage.Resource
	Asked    oauth.Scopes
	Allowed  oauth.Scopes
}

// Ask returns the question for a request. If the user has consented to some of the scopes, only the
// others are asked. consented is nil if the user has not been asked before.
func Ask(r storage.Resource, asked, consented oauth.Scopes) Question {
	q := Question{Resource: r, Asked: asked}
	if allowed := asked.Intersect(Implied(r, consented)); len(allowed) < len(asked) {
		q.Allowed = allowed.Without(oauth.Scopes{oauth.OfflineAccess})
	}
	return q
}

// Open returns the scopes that the user can grant or refuse.
func (q Question) Open() oauth.Scopes {
	return q.own().Without(q.Allowed).Without(Required(q.Resource))
}

// own returns the requested scopes of the resource.
func (q Question) own() oauth.Scopes { return q.Asked.Without(oauth.Scopes{oauth.OfflineAccess}) }

// Optional reports whether there is a choice. A single harmless scope is granted or denied as a
// whole.
func (q Question) Optional() bool {
	open := q.Open()
	return len(open) > 0 && (len(q.own()) > 1 || len(Dangerous(q.Resource, open)) > 0)
}

// Preselected returns the grant of an approval without a choice: everything except the dangerous
// scopes.
func (q Question) Preselected() oauth.Scopes {
	return q.with(q.Open().Without(Dangerous(q.Resource, q.Open())))
}

// ReadOnly returns the grant of the preset "read". It returns false if that would be nothing or
// everything, or if a mandatory scope gives more than read access.
func (q Question) ReadOnly() (oauth.Scopes, bool) {
	open := q.Open()
	read, fixed := ReadOnly(q.Resource, open), q.own().Without(q.Allowed).Without(open)
	harmless := len(ReadOnly(q.Resource, fixed)) == len(fixed)
	return q.with(read), harmless && len(read)+len(fixed) > 0 && len(read) < len(open)
}

// with returns the chosen scopes and the scopes that are not open.
func (q Question) with(chosen oauth.Scopes) oauth.Scopes {
	return q.Asked.Without(q.Open().Without(chosen))
}

// Preset is a named choice of scopes.
type Preset string

// The presets.
const (
	PresetNone   Preset = ""    // the form contains the selected scopes, or no choice
	PresetAll    Preset = "all" // everything that is not dangerous, and the selected dangerous scopes
	PresetRead   Preset = "read"
	PresetChoose Preset = "choose" // the selected scopes
)

// Choice is a user's choice.
type Choice struct {
	Preset Preset       `json:"p,omitempty"`
	Ticked oauth.Scopes `json:"t,omitempty"`
}

// ErrNothing is returned for a choice that grants nothing.
var ErrNothing = errors.New("policy: no scope was chosen")

// ErrPreset is returned for an unknown preset.
var ErrPreset = errors.New("policy: unknown preset")

// Grant returns the scopes that a choice grants (AS-76, AS-237). It never includes a scope that was
// not requested, and always includes previously allowed and required scopes. It returns ErrNothing
// or ErrPreset for an invalid choice.
func (q Question) Grant(c Choice) (oauth.Scopes, error) {
	granted := q.with(q.Open().Intersect(c.Ticked))
	switch {
	case c.Preset == PresetAll:
		dangerous := Dangerous(q.Resource, q.Open())
		granted = q.with(q.Open().Without(dangerous.Without(c.Ticked)))
	case c.Preset == PresetRead:
		granted = q.with(ReadOnly(q.Resource, q.Open()))
	case c.Preset == PresetNone && len(c.Ticked) == 0:
		granted = q.Preselected()
	case c.Preset != PresetNone && c.Preset != PresetChoose:
		return nil, ErrPreset
	}
	if own := q.own(); len(own) > 0 && len(own.Intersect(granted)) == 0 {
		return nil, ErrNothing
	}
	return granted, nil
}

// Required returns the scopes that users cannot leave out: scopes marked as required, and
// non-dangerous scopes that every call needs. A dangerous scope is always optional (FaultOf).
func Required(r storage.Resource) (out oauth.Scopes) {
	every := everyCall(r)
	for _, s := range r.Scopes {
		if s.Required || every.Has(s.Name) {
			out = append(out, s.Name)
		}
	}
	return out
}

// everyCall returns EveryCall without dangerous scopes, which only a user can add.
func everyCall(r storage.Resource) oauth.Scopes {
	return EveryCall(r).Without(Dangerous(r, EveryCall(r)))
}

// Kept returns the scopes of a reduced grant: those to keep, and the held ones that cannot be left
// out.
func Kept(r storage.Resource, held, keep oauth.Scopes) oauth.Scopes {
	return keep.Union(Required(r).Intersect(held))
}

// Including returns every scope of a resource that is in s or includes a scope in s.
func Including(r storage.Resource, s oauth.Scopes) (out oauth.Scopes) {
	for _, scope := range ResourceScopes(r) {
		if len(Implied(r, oauth.Scopes{scope}).Intersect(s)) > 0 {
			out = append(out, scope)
		}
	}
	return out
}

// Dangerous returns the scopes in s that are dangerous or include a dangerous scope.
func Dangerous(r storage.Resource, s oauth.Scopes) oauth.Scopes {
	return s.Without(without(r, s, func(t storage.ScopeText) bool { return t.Dangerous }))
}

// ReadOnly returns the scopes in s that give only read access, with everything that they include.
func ReadOnly(r storage.Resource, s oauth.Scopes) oauth.Scopes {
	return without(r, s, func(t storage.ScopeText) bool { return t.Access != storage.AccessRead || t.Dangerous })
}

// without returns the scopes in s that neither are nor include a scope of the kind. It drops scopes
// that the resource does not have, whose kind is unknown.
func without(r storage.Resource, s oauth.Scopes, kind func(storage.ScopeText) bool) oauth.Scopes {
	return slices.DeleteFunc(slices.Clone(s), func(scope string) bool {
		included := Implied(r, oauth.Scopes{scope})
		return len(included.Without(ResourceScopes(r))) > 0 ||
			slices.ContainsFunc(r.Scopes, func(t storage.ScopeText) bool { return included.Has(t.Name) && kind(t) })
	})
}

// FaultOf returns an error text for the marks of a scope, or "". Included scopes count as part of a
// scope, so a read scope must not include a scope with more access.
func FaultOf(r storage.Resource, s storage.ScopeText) string {
	one := oauth.Scopes{s.Name}
	switch {
	case s.Access != "" && s.Access != storage.AccessRead && s.Access != storage.AccessWrite &&
		s.Access != storage.AccessAdmin:
		return "access is not read, write or admin"
	case s.Required && len(Dangerous(r, one)) > 0:
		return "it is required and dangerous, but what is dangerous must be left to people: mark it as one of both"
	case locksOut(r, s):
		return "every call needs it, and it is dangerous, so an application whose person does not pick it could not " +
			"even connect: mark another scope with every_call, or this one as not dangerous"
	case s.ACR != "" && !oauth.ValidACR(s.ACR):
		return fmt.Sprintf("acr %q is not one of %s", s.ACR, strings.Join(oauth.ACRs(), ", "))
	case s.MaxAge < 0 || s.MaxAge > 0 && time.Duration(s.MaxAge) < MinMaxAge:
		return fmt.Sprintf("its max_age is less than %v", MinMaxAge)
	case s.Access == storage.AccessRead && len(ReadOnly(r, one)) == 0:
		return "its access is read, but it is dangerous or includes a scope whose access is not read"
	}
	return ""
}

// locksOut reports whether every call needs the dangerous scope s, while users could choose other
// scopes without it (RU-17).
func locksOut(r storage.Resource, s storage.ScopeText) bool {
	one := oauth.Scopes{s.Name}
	if len(Dangerous(r, one)) == 0 || !EveryCall(r).Has(s.Name) {
		return false
	}
	return s.EveryCall || len(Including(r, one)) < len(r.Scopes)
}

// Useless reports whether a token with the remaining scopes lacks a requested scope that every call
// needs, so that its client could not even connect.
func Useless(r storage.Resource, asked, left oauth.Scopes) bool {
	return len(EveryCall(r).Intersect(Implied(r, asked)).Without(Implied(r, left))) > 0
}
