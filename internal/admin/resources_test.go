package admin_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestResourceOperations checks that MCP servers can be added, partly changed, and removed. An
// invalid change is refused and changes nothing (AS-237, AS-239).
func TestResourceOperations(t *testing.T) {
	s := installed(t)
	by := s.Operator()
	const uri, alias = "https://mcp.example.com/mcp", "https://mcp.example.com/mcp@work"
	add := func(in admin.NewResource) error {
		_, err := admin.ResourceAdd.Do(t.Context(), by, in)
		return err
	}
	set := func(in admin.ResourceChange) error {
		in.URI = uri
		_, err := admin.ResourceSet.Do(t.Context(), by, in)
		return err
	}
	made, err := admin.ResourceAdd.Do(t.Context(), by, admin.NewResource{URI: "https://MCP.example.com/mcp/"})
	if err != nil || made.URI != uri || made.Name != uri || len(made.Scopes) != 1 || !made.Scopes[0].Default ||
		made.From != "store" {
		t.Fatalf("added without more: %+v, %v", made, err)
	}
	for _, own := range s.Own { // it would have no effect (security review A-L6)
		if err := add(admin.NewResource{URI: own.URI}); !errors.Is(err, admin.ErrConflict) {
			t.Errorf("%s, of the server itself: got %v", own.URI, err)
		}
	}
	scopes := []storage.ScopeText{{Name: "notes:read"}, {Name: "notes:write", Description: "add notes", Default: true}}
	if err := set(admin.ResourceChange{Scopes: scopes, Aliases: []string{alias}, DPoP: "required"}); err != nil {
		t.Fatal(err)
	}
	if err := set(admin.ResourceChange{Name: "Notes"}); err != nil {
		t.Fatal(err)
	}
	got, err := admin.ResourceShow.Do(t.Context(), by, admin.ResourceURL{URI: alias})
	if err != nil || got.URI != uri || got.Name != "Notes" || !slices.Equal(got.Aliases, []string{alias}) ||
		got.DPoP != storage.DPoPRequired || len(got.Scopes) != 2 || got.Scopes[0].Description != "notes:read" ||
		got.Scopes[0].Default {
		t.Errorf("AS-237: by its alias it is %+v, %v: unchanged settings must stay", got, err)
	}
	evil, long := []string{"https://evil.example"}, strings.Repeat("n", 201)
	scoped := func(all ...storage.ScopeText) error { return set(admin.ResourceChange{Scopes: all}) }
	for name, tt := range map[string]struct {
		err  error
		want error
		says string
	}{
		"no URL":             {add(admin.NewResource{URI: "notes"}), admin.ErrInvalid, "notes"},
		"there already":      {add(admin.NewResource{URI: uri}), admin.ErrConflict, "is there already"},
		"an alias":           {add(admin.NewResource{URI: alias}), admin.ErrConflict, "is an alias of " + uri},
		"an alias elsewhere": {set(admin.ResourceChange{Aliases: evil}), admin.ErrInvalid, "origin"},
		"no scope":           {scoped(storage.ScopeText{Name: "a b"}), admin.ErrInvalid, "is not a scope"},
		"a scope of ours":    {scoped(storage.ScopeText{Name: "offline_access"}), admin.ErrInvalid, "own"},
		"a clearance":        {scoped(storage.ScopeText{Name: "clearance:x"}), admin.ErrInvalid, "clearance:... are"},
		"a scope twice":      {scoped(scopes[0], scopes[0]), admin.ErrInvalid, "twice"},
		"an unknown one":     {scoped(storage.ScopeText{Name: "a", Implies: []string{"b"}}), admin.ErrInvalid, `"b"`},
		"contradicting marks": {
			scoped(storage.ScopeText{Name: "a", Required: true, Dangerous: true}), admin.ErrInvalid,
			"required and dangerous",
		},
		"too many scopes": {scoped(make([]storage.ScopeText, 101)...), admin.ErrInvalid, "at most"},
		"a long name":     {set(admin.ResourceChange{Name: long}), admin.ErrInvalid, "more than 200"},
		"neither optional nor required": {
			set(admin.ResourceChange{DPoP: "perhaps"}), admin.ErrInvalid, "not one of optional, required",
		},
	} {
		if !errors.Is(tt.err, tt.want) || !strings.Contains(tt.err.Error(), tt.says) {
			t.Errorf("AS-237: %s: %v, want %v that says %q", name, tt.err, tt.want, tt.says)
		}
	}
	after, err := admin.ResourceShow.Do(t.Context(), by, admin.ResourceURL{URI: uri})
	if err != nil || after.Name != "Notes" || len(after.Scopes) != 2 {
		t.Errorf("AS-237: after the refusals it is %+v, %v", after, err)
	}
	if err := set(admin.ResourceChange{Aliases: []string{}}); err != nil {
		t.Error(err)
	}
	_, err = admin.ResourceShow.Do(t.Context(), by, admin.ResourceURL{URI: alias})
	if !errors.Is(err, admin.ErrNotFound) {
		t.Errorf("AS-239: an alias that was taken away: %v, want ErrNotFound", err)
	}
	if _, err := admin.ResourceRemove.Do(t.Context(), by, admin.ResourceURL{URI: uri}); err != nil {
		t.Error(err)
	}
	if err := set(admin.ResourceChange{Name: "Notes"}); !errors.Is(err, admin.ErrNotFound) {
		t.Errorf("one that was removed: %v, want ErrNotFound", err)
	}
}

// TestScopeFindings checks that health reports a stored resource whose scopes lock an application
// out, with the command that fixes it (RU-17). resource set refuses to create one.
func TestScopeFindings(t *testing.T) {
	s := installed(t)
	const uri = "https://mcp.example.com/mcp"
	bad := []storage.ScopeText{
		{Name: "notes", Description: "read", EveryCall: true, Dangerous: true}, {Name: "more", Description: "more"},
	}
	_, err := admin.ResourceAdd.Do(t.Context(), s.Operator(), admin.NewResource{URI: uri, Scopes: bad})
	if !errors.Is(err, admin.ErrInvalid) {
		t.Errorf("RU-17: resource add: %v", err)
	}
	if err := s.Store.AddResource(t.Context(), storage.Resource{URI: uri, Name: uri, Scopes: bad}); err != nil {
		t.Fatal(err)
	}
	h, err := admin.HealthShow.Do(t.Context(), s.Operator(), admin.None{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(h.Findings, func(f admin.Finding) bool { return f.Check == "resources" })
	if i < 0 || h.OK || !strings.Contains(h.Findings[i].What, `"notes": every call needs it`) ||
		h.Findings[i].Advice != "change its scopes: mcp-authd resource set "+uri {
		t.Errorf("RU-17: got %+v", h.Findings)
	}
}
