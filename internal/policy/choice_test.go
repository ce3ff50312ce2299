package policy

import (
	"errors"
	"reflect"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var marked = storage.Resource{Scopes: []storage.ScopeText{
	{Name: "base", Access: storage.AccessRead, Required: true},
	{Name: "read", Access: storage.AccessRead},
	{Name: "write", Access: storage.AccessWrite, Implies: []string{"read"}},
	{Name: "delete", Access: storage.AccessAdmin, Dangerous: true},
	{Name: "all", Access: storage.AccessRead, Implies: []string{"write", "delete"}},
	{Name: "plain"},
}}

// AS-76, AS-237: a choice grants at least the fixed scopes and at most the requested ones.
func TestChoice(t *testing.T) {
	every := append(ResourceScopes(marked), oauth.OfflineAccess)
	question := Ask(marked, every, oauth.Scopes{"plain"})
	for _, c := range []struct {
		name   string
		choice Choice
		want   oauth.Scopes
	}{
		{"nothing chosen", Choice{}, oauth.Scopes{"base", "read", "write", "plain", oauth.OfflineAccess}},
		{"all but dangerous", Choice{Preset: PresetAll},
			oauth.Scopes{"base", "read", "write", "plain", oauth.OfflineAccess}},
		{"all, and a dangerous one", Choice{PresetAll, oauth.Scopes{"delete", "foreign"}},
			oauth.Scopes{"base", "read", "write", "delete", "plain", oauth.OfflineAccess}},
		{"read only, without one that includes more", Choice{Preset: PresetRead},
			oauth.Scopes{"base", "read", "plain", oauth.OfflineAccess}},
		{"ticked", Choice{PresetChoose, oauth.Scopes{"delete", "foreign"}},
			oauth.Scopes{"base", "delete", "plain", oauth.OfflineAccess}},
	} {
		got, err := question.Grant(c.choice)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("AS-237 %s: got %v %v, want %v", c.name, got, err, c.want)
		}
	}
	if _, err := question.Grant(Choice{Preset: "foreign"}); !errors.Is(err, ErrPreset) {
		t.Errorf("got %v, want %v", err, ErrPreset)
	}
	alone := Ask(marked, oauth.Scopes{"delete", oauth.OfflineAccess}, nil)
	if _, err := alone.Grant(Choice{}); !errors.Is(err, ErrNothing) || !alone.Optional() {
		t.Errorf("one dangerous scope alone: got %v, want %v", err, ErrNothing)
	}
	if q := Ask(marked, oauth.Scopes{"read"}, oauth.Scopes{"write"}); q.Allowed != nil || q.Optional() {
		t.Errorf("a whole allowed set must be asked as a whole: got %+v", q)
	}
	if got, err := Ask(storage.Resource{}, nil, nil).Grant(Choice{}); err != nil || len(got) > 0 {
		t.Errorf("a resource without scopes: got %v %v", got, err)
	}
}

// RU-17: the scopes of the first sign-in and the scopes of every call are independent.
func TestFirstAndEveryCall(t *testing.T) {
	for _, c := range []struct {
		name                   string
		scopes                 []storage.ScopeText
		first, every, required string
	}{
		{"none", nil, "", "", ""},
		{"none is marked", []storage.ScopeText{{Name: "a"}, {Name: "b"}}, "a", "a", "a"},
		{"the first default one",
			[]storage.ScopeText{{Name: "a"}, {Name: "b", Default: true}, {Name: "c", Default: true}},
			"b c", "b", "b"},
		{"one of each", []storage.ScopeText{{Name: "a", Default: true}, {Name: "b", EveryCall: true}, {Name: "c"}},
			"a b", "b", "b"},
		{"two for every call", []storage.ScopeText{{Name: "a", EveryCall: true}, {Name: "b", EveryCall: true}},
			"a b", "a b", "a b"},
		{"required for its tools", []storage.ScopeText{{Name: "a"}, {Name: "b", Required: true}}, "a", "a", "a b"},
		{"a dangerous one is left to people", []storage.ScopeText{{Name: "a", Dangerous: true}}, "a", "a", ""},
	} {
		r := storage.Resource{Scopes: c.scopes}
		if f, e, q := DefaultScopes(r).String(), EveryCall(r).String(), Required(r).String(); f != c.first ||
			e != c.every || q != c.required {
			t.Errorf("RU-17 %s: got first %q, every call %q, required %q", c.name, f, e, q)
		}
	}
}

// RU-17: no preset and no reduction removes a scope that every call needs.
func TestNothingLocksOut(t *testing.T) {
	r := storage.Resource{Scopes: []storage.ScopeText{
		{Name: "use", EveryCall: true},
		{Name: "read", Default: true, Access: storage.AccessRead},
		{Name: "write", Default: true, Access: storage.AccessWrite},
	}}
	q := Ask(r, DefaultScopes(r), nil)
	for _, c := range []Choice{
		{}, {Preset: PresetAll}, {Preset: PresetRead}, {Preset: PresetChoose}, {PresetChoose, oauth.Scopes{"write"}},
	} {
		if got, err := q.Grant(c); err != nil || !got.Has("use") {
			t.Errorf("RU-17 %+v: got %v, %v", c, got, err)
		}
	}
	if _, offered := q.ReadOnly(); offered {
		t.Error("read only is offered, and gives a scope that is not marked as reading")
	}
	r.Scopes[0].Access = storage.AccessRead
	q.Resource = r
	if got, offered := q.ReadOnly(); !offered || got.String() != "use read" {
		t.Errorf("read only: got %v, %v", got, offered)
	}
	if got := Kept(r, oauth.Scopes{"use", "write"}, oauth.Scopes{"write"}); !got.Has("use", "write") {
		t.Errorf("RU-17 a narrowed grant keeps %v", got)
	}
	if got := Kept(r, oauth.Scopes{"write"}, oauth.Scopes{"write"}); got.Has("use") {
		t.Errorf("RU-17 a grant gets new scopes: %v", got)
	}
	all := oauth.Scopes{"use", "write"}
	if !Useless(r, all, oauth.Scopes{"write"}) || Useless(r, all, oauth.Scopes{"use"}) ||
		Useless(r, oauth.Scopes{"write"}, oauth.Scopes{"write"}) {
		t.Error("RU-17 a token without what every call needs is useless, and no other")
	}
}

// AS-237: contradictory marks are refused.
func TestFaultOf(t *testing.T) {
	faulty := map[string]storage.ScopeText{
		"read that includes more": marked.Scopes[4],
		"unknown access":          {Name: "x", Access: "root"},
		"required and dangerous":  {Name: "delete", Required: true},
	}
	for name, s := range faulty {
		if FaultOf(marked, s) == "" {
			t.Errorf("%s is accepted", name)
		}
	}
	for name, scopes := range map[string][]storage.ScopeText{
		"needed by every call and dangerous": {{Name: "a", EveryCall: true, Dangerous: true}},
		"the first, which is dangerous":      {{Name: "a", Dangerous: true}, {Name: "b"}},
		"the default, which includes a dangerous one": {{Name: "a", Dangerous: true},
			{Name: "b", Default: true, Implies: []string{"a"}}},
	} {
		r := storage.Resource{Scopes: scopes}
		if FaultOf(r, scopes[0]) == "" && FaultOf(r, scopes[len(scopes)-1]) == "" {
			t.Errorf("RU-17 %s is accepted", name)
		}
	}
	included := storage.Resource{Scopes: []storage.ScopeText{
		{Name: "a", Dangerous: true}, {Name: "b", Dangerous: true, Implies: []string{"a"}},
	}}
	if fault := FaultOf(included, included.Scopes[0]); fault != "" {
		t.Errorf("RU-17 a dangerous scope that all others include locks nobody out: %s", fault)
	}
	for _, s := range marked.Scopes[:4] {
		if fault := FaultOf(marked, s); fault != "" {
			t.Errorf("%s: %s", s.Name, fault)
		}
	}
}
