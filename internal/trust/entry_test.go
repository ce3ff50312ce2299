package trust

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func TestCheck(t *testing.T) {
	type record = storage.TrustEntry
	r := newRig(t)
	for name, tt := range map[string]struct {
		entry  int // 0: a company's, 1: a platform's
		change func(*record)
		want   string // prefix of the error
	}{
		"id":       {0, func(e *record) { e.ID = "A b" }, "id:"},
		"kind":     {0, func(e *record) { e.Kind = "other" }, "kind:"},
		"issuer":   {0, func(e *record) { e.Issuer = "" }, "issuer:"},
		"two keys": {0, func(e *record) { e.JWKSURL = "https://idp.example/keys" }, "jwks_url:"},
		"http": {0, func(e *record) {
			e.JWKS, e.JWKSURL = "", "http://idp.example/keys"
		}, "jwks_url:"},
		"http issuer": {0, func(e *record) { e.JWKS, e.Issuer = "", "http://idp.example" }, "issuer:"},
		"user in the URL": {0, func(e *record) {
			e.JWKS, e.JWKSURL = "", "https://a@idp.example"
		}, "jwks_url:"},
		"keys":     {0, func(e *record) { e.JWKS = "{}" }, "jwks:"},
		"networks": {0, func(e *record) { e.Networks = []string{"10.0.0.0"} }, "networks[0]:"},
		"resource": {0, func(e *record) { e.Resources = []string{"mcp"} }, "resources[0]:"},
		"scope":    {0, func(e *record) { e.Scopes = []string{"a b"} }, "scopes[0]:"},
		"domain": {0, func(e *record) {
			e.EmailDomains = []string{"*.example"}
		}, "email_domains[0]:"},
		"max_ttl":               {0, func(e *record) { e.MaxTTL = 25 * time.Hour }, "max_ttl:"},
		"AS-183 jti":            {0, func(e *record) { e.RequireJTI = new(bool) }, "require_jti:"},
		"a name for no account": {0, func(e *record) { e.Subject = "{{.sub}}" }, "subject: means nothing"},
		"a name for all accounts": {0, func(e *record) {
			e.CreatePeople, e.Subject = true, "ann"
		}, "subject: names no claim"},
		"people of a platform":         {1, func(e *record) { e.CreatePeople = true }, "create_people:"},
		"public clients of a platform": {1, func(e *record) { e.AllowPublic = true }, "allow_public:"},
		"AS-204 no rule":               {1, func(e *record) { e.Match = nil }, "match:"},
		"two conditions":               {1, func(e *record) { e.Match[0].Glob = "x" }, "match[0]:"},
		"no condition":                 {1, func(e *record) { e.Match[0].Equals = "" }, "match[0]:"},
		"no claim":                     {1, func(e *record) { e.Match[0].Claim = "" }, "match[0]:"},
		"three stars":                  {1, func(e *record) { e.Match[1].Glob = "***" }, "match[1]: glob:"},
		"expression": {1, func(e *record) {
			e.Match[2].Expression = "claims.a =="
		}, "match[2]: expression:"},
		"an expression that holds of nothing": {1, func(e *record) {
			e.Match[2].Expression = `claims.event_name != "pull_request"`
		}, "match[2]: expression: holds for assertions without the claim event_name"},
		"template":                   {1, func(e *record) { e.Subject = "ci" }, "subject:"},
		"open template":              {1, func(e *record) { e.Subject = "{{.sub" }, "subject:"},
		"a template with a function": {1, func(e *record) { e.Subject = "{{.sub | js}}" }, "subject:"},
	} {
		t.Run("AS-235 "+name, func(t *testing.T) {
			e := r.entries[tt.entry]
			e.Match = append([]storage.TrustMatch{}, e.Match...)
			tt.change(&e)
			if _, err := Check(e); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		glob, text string
		want       bool
	}{
		{"refs/heads/*", "refs/heads/main", true},
		{"refs/heads/*", "refs/heads/a/b", false},
		{"refs/heads/**", "refs/heads/a/b", true},
		{"repo:o/*:ref:refs/heads/main", "repo:o/r:ref:refs/heads/main", true},
		{"repo:o/*:ref:refs/heads/main", "repo:o/r:environment:x:ref:refs/heads/main", false},
		{"v?", "v1", true}, {"v?", "v/", false}, {"a.c", "abc", false}, {"a", "xa", false}, {"a", "a\n", false},
		{"**", "any\nthing", true}, {"*", "", true}, {"(", "(", true},
	} {
		re, err := compileGlob(tt.glob)
		if err != nil {
			t.Fatal(err)
		}
		if got := re.MatchString(tt.text); got != tt.want {
			t.Errorf("AS-235 %q of %q: got %v", tt.glob, tt.text, got)
		}
	}
}

func TestClaimPaths(t *testing.T) {
	all := map[string]any{
		"kubernetes.io": map[string]any{"namespace": "prod", "serviceaccount": map[string]any{"name": "bot"}},
		"groups":        []any{"a", "b", 3}, "verified": true, "id": 12345678901234567, "a": map[string]any{"b": 1.5},
	}
	for _, tt := range []struct {
		match storage.TrustMatch
		want  bool
	}{
		{storage.TrustMatch{Claim: "kubernetes.io.namespace", Equals: "prod"}, true},
		{storage.TrustMatch{Claim: "kubernetes.io.serviceaccount.name", Equals: "bot"}, true},
		{storage.TrustMatch{Claim: "kubernetes.io.serviceaccount", Equals: "bot"}, false},
		{storage.TrustMatch{Claim: "kubernetes.namespace", Equals: "prod"}, false},
		{storage.TrustMatch{Claim: "groups", Equals: "b"}, true},
		{storage.TrustMatch{Claim: "groups", Equals: "c"}, false},
		{storage.TrustMatch{Claim: "verified", Equals: "true"}, true},
		{storage.TrustMatch{Claim: "id", Equals: "12345678901234567"}, true},
		{storage.TrustMatch{Claim: "a.b", Equals: "1.5"}, true},
		{storage.TrustMatch{Claim: "missing", Glob: "**"}, false},
		{storage.TrustMatch{Expression: `claims["kubernetes.io"].namespace == "prod" && claims.id > 5`}, true},
	} {
		m, err := compileMatch(tt.match)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.holds(all); got != tt.want {
			t.Errorf("AS-235 %s: got %v", m.describe(), got)
		}
	}
}

// shelf is a store with entries.
type shelf struct {
	entries []storage.TrustEntry
	err     error
	reads   int
}

func (s *shelf) ListTrust(context.Context) ([]storage.TrustEntry, error) {
	s.reads++
	return s.entries, s.err
}

// Stored entries are used within two seconds, and unusable ones are skipped.
func TestStored(t *testing.T) {
	r := newRig(t)
	s := &shelf{}
	stored := r.entries[1]
	r.entries = r.entries[:1]
	i := r.issuers(t, s)
	build := func(want Rule) {
		t.Helper()
		_, got := verify(t, i, r.platform.sign(t, "", r.build()))
		wantRule(t, got, want)
	}
	offers := func(wantEnterprise, wantWorkload bool) {
		t.Helper()
		if e, w, err := i.Offers(t.Context()); err != nil || e != wantEnterprise || w != wantWorkload {
			t.Errorf("offers %v, %v, %v", e, w, err)
		}
	}
	build(RuleIssuer)
	offers(true, false)
	s.entries = []storage.TrustEntry{{ID: "newer", Unreadable: true, Kind: Workload}, stored}
	build(RuleIssuer)
	r.now = r.now.Add(entriesFresh)
	build("")
	offers(true, true)
	stored.DisabledAt = r.now
	s.entries = []storage.TrustEntry{stored, {ID: "company", DisabledAt: r.now}}
	r.now = r.now.Add(entriesFresh)
	build(RuleIssuer)
	offers(false, false)
	if s.reads != 3 {
		t.Errorf("read %d times, want 3", s.reads)
	}
	t.Run("AS-235 an entry of the configuration goes before one of the store with its id", func(t *testing.T) {
		stored.ID, stored.DisabledAt = "company", time.Time{}
		s.entries = []storage.TrustEntry{stored}
		r.now = r.now.Add(entriesFresh)
		build(RuleIssuer)
		offers(true, false)
	})
	t.Run("entries that are as they were are not made ready again", func(t *testing.T) {
		stored.ID = "ci"
		s.entries = []storage.TrustEntry{stored}
		r.now = r.now.Add(entriesFresh)
		before, err := i.entries(t.Context())
		if err != nil || len(before) != 2 {
			t.Fatalf("got %d entries, %v", len(before), err)
		}
		for _, change := range []bool{false, true} {
			again := stored
			again.Match = slices.Clone(stored.Match)
			if change {
				again.Match[0].Equals = "other"
			}
			s.entries = []storage.TrustEntry{again}
			r.now = r.now.Add(entriesFresh)
			if after, err := i.entries(t.Context()); err != nil || (after[1] != before[1]) != change {
				t.Errorf("changed %v: made ready again %v, %v", change, after[1] != before[1], err)
			}
		}
	})
	t.Run("a store that fails is no refusal", func(t *testing.T) {
		s.err = errors.New("down")
		r.now = r.now.Add(entriesFresh)
		var refused *Refusal
		_, err := i.Verify(t.Context(), r.platform.sign(t, "", r.build()))
		if !errors.Is(err, s.err) || errors.As(err, &refused) {
			t.Errorf("got %v", err)
		}
	})
}
