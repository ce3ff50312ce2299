package policy

import (
	"errors"
	"reflect"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

var marked = storage.Resource{Scopes: []storage.ScopeText{
	{Name: "base", Access: storage.AccessRead, Required: true},
	{Name: "read", Access: storage.AccessRead},
	{Name: "write", Access: storage.AccessWrite, Implies: []string{"read"}},
	{Name: "delete", Access: storage.AccessAdmin, Dangerous: true},
	{Name: "all", Access: storage.AccessRead, Implies: []string{"write", "delete"}},
	{Name: "plain"},
}}

// AS-76, AS-237: what a choice grants lies between what is fixed and what was asked.
func TestChoice(t *testing.T) {
	every := append(ResourceScopes(marked), oauth.OfflineAccess)
	question := Ask(marked, every, oauth.Scopes{"plain"})
	for _, c := range []struct {
		name   string
		choice Choice
		want   oauth.Scopes
	}{
		{"nothing chosen", Choice{}, oauth.Scopes{"base", "read", "write", "plain", oauth.OfflineAccess}},
		{"all", Choice{Preset: PresetAll}, every},
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
		t.Errorf("what is allowed as a whole is asked as a whole: got %+v", q)
	}
	if got, err := Ask(storage.Resource{}, nil, nil).Grant(Choice{}); err != nil || len(got) > 0 {
		t.Errorf("a resource without scopes: got %v %v", got, err)
	}
}

// AS-237: marks that contradict each other are refused.
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
	for _, s := range marked.Scopes[:4] {
		if fault := FaultOf(marked, s); fault != "" {
			t.Errorf("%s: %s", s.Name, fault)
		}
	}
}
