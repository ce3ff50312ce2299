package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Question is what a consent page asks: the scopes of a request, and those among them that
// the person has allowed before, which are not asked about again.
type Question struct {
	Resource storage.Resource
	Asked    oauth.Scopes
	Allowed  oauth.Scopes
}

// Ask returns the question about a request. Of one that asks for more than the person has
// consented to, only the difference is asked; consented is nil when they have not been asked before.
func Ask(r storage.Resource, asked, consented oauth.Scopes) Question {
	q := Question{Resource: r, Asked: asked}
	if allowed := asked.Intersect(Implied(r, consented)); len(allowed) < len(asked) {
		q.Allowed = allowed.Without(oauth.Scopes{oauth.OfflineAccess})
	}
	return q
}

// Open returns the scopes that the person can grant or not.
func (q Question) Open() oauth.Scopes {
	return q.own().Without(q.Allowed).Without(Required(q.Resource))
}

// own are the scopes of the resource that are asked for.
func (q Question) own() oauth.Scopes { return q.Asked.Without(oauth.Scopes{oauth.OfflineAccess}) }

// Optional reports whether there is anything to choose: one harmless scope alone is granted or denied as a whole.
func (q Question) Optional() bool {
	open := q.Open()
	return len(open) > 0 && (len(q.own()) > 1 || len(Dangerous(q.Resource, open)) > 0)
}

// Preselected returns what an approval grants that chooses nothing: all but the dangerous
// scopes.
func (q Question) Preselected() oauth.Scopes {
	return q.with(q.Open().Without(Dangerous(q.Resource, q.Open())))
}

// ReadOnly returns what the preset of this name grants. It is false where that is nothing or all, or where a scope
// that cannot be left out gives more than access for reading.
func (q Question) ReadOnly() (oauth.Scopes, bool) {
	open := q.Open()
	read, fixed := ReadOnly(q.Resource, open), q.own().Without(q.Allowed).Without(open)
	harmless := len(ReadOnly(q.Resource, fixed)) == len(fixed)
	return q.with(read), harmless && len(read)+len(fixed) > 0 && len(read) < len(open)
}

// with are the chosen scopes and those that are not open.
func (q Question) with(chosen oauth.Scopes) oauth.Scopes {
	return q.Asked.Without(q.Open().Without(chosen))
}

// Preset is a choice of scopes by one word.
type Preset string

// The presets.
const (
	PresetNone   Preset = "" // of a form that posts what was ticked, or decides without a choice
	PresetAll    Preset = "all"
	PresetRead   Preset = "read"
	PresetChoose Preset = "choose" // what was ticked
)

// Choice is what a person has chosen.
type Choice struct {
	Preset Preset       `json:"p,omitempty"`
	Ticked oauth.Scopes `json:"t,omitempty"`
}

// ErrNothing is that of a choice that grants nothing.
var ErrNothing = errors.New("policy: nothing was chosen")

// ErrPreset is that of a choice by a preset that does not exist.
var ErrPreset = errors.New("policy: unknown preset")

// Grant returns the scopes that a choice grants (AS-76, AS-237): never one that was not asked for,
// and each that was allowed before or that is required. ErrNothing, ErrPreset.
func (q Question) Grant(c Choice) (oauth.Scopes, error) {
	granted := q.with(q.Open().Intersect(c.Ticked))
	switch {
	case c.Preset == PresetAll:
		granted = q.Asked
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

// Required returns the scopes that people cannot leave out: those marked so, and those that every call needs. A
// dangerous scope is always left to people (FaultOf).
func Required(r storage.Resource) (out oauth.Scopes) {
	every := everyCall(r)
	for _, s := range r.Scopes {
		if s.Required || every.Has(s.Name) {
			out = append(out, s.Name)
		}
	}
	return out
}

// everyCall returns EveryCall without dangerous scopes, which only a person adds.
func everyCall(r storage.Resource) oauth.Scopes {
	return EveryCall(r).Without(Dangerous(r, EveryCall(r)))
}

// Kept returns the scopes of a narrowed grant: those to keep, and those of the grant that cannot be left out.
func Kept(r storage.Resource, held, keep oauth.Scopes) oauth.Scopes {
	return keep.Union(Required(r).Intersect(held))
}

// Including returns every scope of a resource that is, or includes, one of s.
func Including(r storage.Resource, s oauth.Scopes) (out oauth.Scopes) {
	for _, scope := range ResourceScopes(r) {
		if len(Implied(r, oauth.Scopes{scope}).Intersect(s)) > 0 {
			out = append(out, scope)
		}
	}
	return out
}

// Dangerous returns those of s that are, or include, a dangerous scope.
func Dangerous(r storage.Resource, s oauth.Scopes) oauth.Scopes {
	return s.Without(without(r, s, func(t storage.ScopeText) bool { return t.Dangerous }))
}

// ReadOnly returns those of s that give, with all that they include, nothing but access for reading.
func ReadOnly(r storage.Resource, s oauth.Scopes) oauth.Scopes {
	return without(r, s, func(t storage.ScopeText) bool { return t.Access != storage.AccessRead || t.Dangerous })
}

// without returns those of s that are not, and do not include, a scope of some kind. Of a scope that the
// resource does not have nothing is known, so it is left out.
func without(r storage.Resource, s oauth.Scopes, kind func(storage.ScopeText) bool) oauth.Scopes {
	return slices.DeleteFunc(slices.Clone(s), func(scope string) bool {
		included := Implied(r, oauth.Scopes{scope})
		return len(included.Without(ResourceScopes(r))) > 0 ||
			slices.ContainsFunc(r.Scopes, func(t storage.ScopeText) bool { return included.Has(t.Name) && kind(t) })
	})
}

// FaultOf says what is wrong with the marks of a scope of a resource, "" for nothing. What a scope
// includes counts as its own, so a scope for reading must not include another.
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

// locksOut reports whether every call needs a dangerous scope, and people could pick others without it (RU-17).
func locksOut(r storage.Resource, s storage.ScopeText) bool {
	one := oauth.Scopes{s.Name}
	if len(Dangerous(r, one)) == 0 || !EveryCall(r).Has(s.Name) {
		return false
	}
	return s.EveryCall || len(Including(r, one)) < len(r.Scopes)
}

// Useless reports whether a token with the scopes that are left of those asked for lacks a scope that every call
// needs, so that its client could not even connect.
func Useless(r storage.Resource, asked, left oauth.Scopes) bool {
	return len(EveryCall(r).Intersect(Implied(r, asked)).Without(Implied(r, left))) > 0
}
