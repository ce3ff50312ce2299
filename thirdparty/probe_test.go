package thirdparty

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
)

func TestDoctor(t *testing.T) {
	for _, tt := range []struct {
		name    string
		edit    func(*Connector)
		before  func(*rig)
		verdict Verdict // the worst one
		says    string
	}{
		{name: "all is well", verdict: Good, says: "Client id and secret are accepted"},
		{name: "down", before: func(r *rig) { r.up.FailAll(fakeidp.Down) }, verdict: Problem,
			says: "Can this machine reach"},
		{name: "another issuer", before: func(r *rig) {
			r.up.Behave(func(b *fakeidp.Behaviour) {
				b.EditMetadata = func(m map[string]any) { m["issuer"] = "https://elsewhere.example" }
			})
		}, verdict: Problem, says: "elsewhere.example"},
		{name: "a wrong secret", edit: func(c *Connector) { c.ClientSecret = "wrong" }, verdict: Problem,
			says: "client_secret"},
		{name: "our clock is wrong", before: func(r *rig) { r.Advance(3 * time.Minute) }, verdict: Problem,
			says: "NTP"},
		{name: "our clock is a little wrong", before: func(r *rig) { r.Advance(30 * time.Second) },
			verdict: Warning, says: "NTP"},
		{name: "no refresh tokens", edit: func(c *Connector) { c.Scopes = nil }, before: func(r *rig) {
			r.up.Behave(func(b *fakeidp.Behaviour) {
				b.EditMetadata = func(m map[string]any) { delete(m, "scopes_supported") }
			})
		}, verdict: Warning, says: "offline_access"},
		{name: "only plain PKCE", before: func(r *rig) {
			r.up.Behave(func(b *fakeidp.Behaviour) {
				b.EditMetadata = func(m map[string]any) { m["code_challenge_methods_supported"] = []string{"plain"} }
			})
		}, verdict: Warning, says: "S256"},
		{name: "the token endpoint is down", before: func(r *rig) { r.up.Fail(fakeidp.Token, fakeidp.Error500) },
			verdict: Problem, says: "token endpoint"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, func(c *Config) {
				if tt.edit != nil {
					tt.edit(&c.Connectors[0])
				}
			})
			r.reproached = true // for example, an invalid code
			if tt.before != nil {
				tt.before(r)
			}
			results := r.Probe(t.Context())
			if len(results) != 1 {
				t.Fatalf("got %d results", len(results))
			}
			got := results[0]
			if got.RedirectURI != issuer+"/callback/corp" || got.LogoutURI != issuer+"/callback/corp/logout" ||
				got.Name != "Corp" {
				t.Errorf("got %+v", got)
			}
			worst, text := Good, ""
			for _, f := range got.Findings {
				text += string(f.Verdict) + ": " + f.What + " " + f.Advice + "\n"
				if f.Verdict == Problem || worst == Good {
					worst = f.Verdict
				}
				if f.Verdict != Good && f.Advice == "" {
					t.Errorf("no advice for %q", f.What)
				}
			}
			if worst != tt.verdict || got.Healthy() != (worst != Problem) || !strings.Contains(text, tt.says) {
				t.Errorf("got %s, want %s and %q:\n%s", worst, tt.verdict, tt.says, text)
			}
			r.nothingMade()
		})
	}
}
