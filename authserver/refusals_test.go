package authserver

import (
	"context"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func TestRefusedAuthorizationIsAudited(t *testing.T) {
	r := newRig(t)
	r.log.Reset()
	pg := r.person().get("/authorize?" +
		authorizeQuery("client_id", "static", "code_challenge_method", "plain").Encode())
	if got := responseOf(t, pg); got.Get("error") != "invalid_request" {
		t.Fatalf("got %v", got)
	}
	for _, line := range strings.Split(r.log.String(), "\n") {
		if strings.Contains(line, `"`+audit.AuthorizeRefused+`"`) && strings.Contains(line, `"client_id":"static"`) &&
			strings.Contains(line, `invalid_request`) {
			return
		}
	}
	t.Errorf("AS-41: no event of the refused authorization in\n%s", r.log.String())
}

// A provider session is live when the browser is checked, and has ended when policy is checked.
func TestProviderSessionEndsBetweenTwoReads(t *testing.T) {
	r, f := delegated(t)
	p := r.person()
	p.signInAt("google")
	ending := &endsInBetween{f}
	r.restart(func(c *Config) { c.Delegation = ending })
	for _, query := range []string{authorizeQuery().Encode(), authorizeQuery("client_id", "static").Encode()} {
		pg := p.get("/authorize?" + query)
		if pg.status != 200 || pg.header.Get("Location") != "" || !strings.Contains(pg.body, `name="password"`) {
			t.Errorf("AS-218: got %d %v, want the sign-in page", pg.status, pg.header)
		}
	}
}

type endsInBetween struct{ *providers }

func (*endsInBetween) Permit(context.Context, string, string, oauth.Scopes) (oauth.Scopes, string, error) {
	return nil, "", storage.ErrRevoked
}

// A refresh checks policy once, before the token is spent: an outage between that and the reply
// does not cost the client its token (AS-219, issue 13, 1.1).
func TestPolicyIsAskedBeforeATokenIsSpent(t *testing.T) {
	r, f := delegated(t)
	p := r.person()
	out := p.signInAt("google")
	failing := &permitsOnce{providers: f}
	r.restart(func(c *Config) { c.Delegation = failing })
	if status, reply := p.token(refreshForm(out["refresh_token"])); status != 200 || failing.asked != 1 {
		t.Errorf("got %d %v, asked %d times", status, reply, failing.asked)
	}
}

type permitsOnce struct {
	*providers
	asked int
}

func (f *permitsOnce) Permit(_ context.Context, _, _ string, scopes oauth.Scopes) (oauth.Scopes, string, error) {
	if f.asked++; f.asked > 1 {
		return nil, "", errNotNow
	}
	return scopes, "", nil
}
