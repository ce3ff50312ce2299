package mcpresource

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestPersons: limits and sessions of requests without a caller are not those of one.
func TestPersons(t *testing.T) {
	var nobody *Principal
	ann := &Principal{Issuer: issuer, Subject: "ann", ClientID: "app"}
	app := &Principal{Issuer: issuer, ClientID: "ann"}
	if nobody.Person() != "" || ann.Person() == "" || app.Person() == "" || ann.Person() == app.Person() {
		t.Errorf("got %q, %q, %q", nobody.Person(), ann.Person(), app.Person())
	}
}

// TestTimesThatAreNotSaid: RFC 7662 §2.2. A time that an introspection leaves out is not the
// beginning of 1970.
func TestTimesThatAreNotSaid(t *testing.T) {
	p, err := principalOf(oauth.Introspection{Active: true, Issuer: issuer, TokenType: "Bearer", Expires: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !p.IssuedAt.IsZero() || !p.ExpiresAt.Equal(time.Unix(1, 0)) {
		t.Errorf("issued %s, expires %s", p.IssuedAt, p.ExpiresAt)
	}
}

// TestExchangeWithoutScopes: RFC 8693 §2.1, RFC 6749 §3.3. A request for the scopes that there
// are names none; an empty scope is no scope.
func TestExchangeWithoutScopes(t *testing.T) {
	e := newExchanger(t)
	b := newBroker(t, e, nil)
	for _, scopes := range []oauth.Scopes{nil, {"repo"}} {
		if _, _, err := b.post(t.Context(), e.URL+"/token", exchange{provider: "github", subject: "x", scopes: scopes}); err != nil {
			t.Fatal(err)
		}
		if got, said := e.last.PostForm["scope"]; said != (len(scopes) > 0) || said && got[0] != "repo" {
			t.Errorf("for %v: got %q", scopes, got)
		}
	}
}

// TestKeysJustRead: a crowd that asks for keys one after the other costs the
// authorization server one request; after a failure the next one tries at once.
func TestKeysJustRead(t *testing.T) {
	var asked, status atomic.Int32
	status.Store(200)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(int(status.Load()))
		io.WriteString(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`)
	}))
	defer s.Close()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	set := &keySet{
		issuer: issuer, location: s.URL, client: defaultClient(nil), now: func() time.Time { return now },
		log: slog.New(slog.DiscardHandler),
	}
	for i, step := range []struct {
		pass         time.Duration
		status, want int32 // want: requests so far
	}{{0, 200, 1}, {0, 200, 1}, {retryPause - 1, 200, 1}, {1, 500, 2}, {0, 500, 3}, {0, 200, 4}, {0, 200, 4}} {
		now = now.Add(step.pass)
		status.Store(step.status)
		err := set.refresh(t.Context())
		if asked.Load() != step.want || (err != nil) != (step.status != 200) {
			t.Errorf("step %d: %d requests, %v, want %+v", i, asked.Load(), err, step)
		}
	}
}
