package mcpresource

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestPersons checks that requests without a caller do not share limits and sessions with any user.
func TestPersons(t *testing.T) {
	var nobody *Principal
	ann := &Principal{Issuer: authServer, Subject: "ann", ClientID: "app"}
	app := &Principal{Issuer: authServer, ClientID: "ann"}
	if nobody.Person() != "" || ann.Person() == "" || app.Person() == "" || ann.Person() == app.Person() {
		t.Errorf("got %q, %q, %q", nobody.Person(), ann.Person(), app.Person())
	}
}

// TestTimesThatAreNotSaid: RFC 7662 §2.2. A time that an introspection response omits is zero, not
// 1970.
func TestTimesThatAreNotSaid(t *testing.T) {
	p, err := principalOf(oauth.Introspection{Active: true, Issuer: authServer, TokenType: "Bearer", Expires: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !p.IssuedAt.IsZero() || !p.ExpiresAt.Equal(time.Unix(1, 0)) {
		t.Errorf("issued %s, expires %s", p.IssuedAt, p.ExpiresAt)
	}
}

// TestExchangeWithoutScopes: RFC 8693 §2.1, RFC 6749 §3.3. A request without scopes omits the
// parameter; an empty scope is not valid.
func TestExchangeWithoutScopes(t *testing.T) {
	e := newExchanger(t)
	b := newBroker(t, e, nil)
	for _, scopes := range []oauth.Scopes{nil, {"repo"}} {
		if _, err := b.Token(calling(e, "x", "grt_1"), "github", scopes...); err != nil {
			t.Fatal(err)
		}
		if got, said := e.last.PostForm["scope"]; said != (len(scopes) > 0) || said && got[0] != "repo" {
			t.Errorf("for %v: got %q", scopes, got)
		}
	}
}
