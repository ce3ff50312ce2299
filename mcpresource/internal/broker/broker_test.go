package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
	"github.com/mcp-authd/mcp-authd/oauth"
)

type exchanger struct {
	*httptest.Server
	asked  atomic.Int64
	answer func(r *http.Request) (int, string)

	mu   sync.Mutex // guards last
	last *http.Request
}

func newExchanger(t *testing.T) *exchanger {
	t.Helper()
	e := &exchanger{answer: func(r *http.Request) (int, string) {
		return 200, fmt.Sprintf(
			`{"access_token":"upstream of %s","issued_token_type":%q,"token_type":"bearer","expires_in":3600,"scope":"repo user"}`,
			r.Form.Get("subject_token"), oauth.TokenTypeAccess,
		)
	}}
	mux := http.NewServeMux()
	e.Server = httptest.NewServer(mux)
	t.Cleanup(e.Close)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]string{"issuer": e.URL, "token_endpoint": e.URL + "/token"})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		e.asked.Add(1)
		e.mu.Lock()
		e.last = r
		answer := e.answer
		e.mu.Unlock()
		status, body := answer(r)
		w.WriteHeader(status)
		w.Write([]byte(body))
	})
	return e
}

// RoundTrip implements http.RoundTripper without a network.
func (e *exchanger) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	e.Config.Handler.ServeHTTP(w, r)
	return w.Result(), nil
}

func newBroker(t *testing.T, e *exchanger, change func(*BrokerConfig)) *Broker {
	t.Helper()
	c := BrokerConfig{Issuer: e.URL, ClientID: "rs", ClientSecret: "s+1"}
	if change != nil {
		change(&c)
	}
	b, err := NewBroker(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// calling returns the context of a guarded request.
func calling(e *exchanger, bearer, grant string) context.Context {
	p := &token.Principal{
		Issuer: e.URL, Subject: "alice", ClientID: "app", Claims: json.RawMessage(`{"gid":"` + grant + `"}`),
	}
	return token.NewContext(context.Background(), token.WithCredential(p, token.Credential{Token: bearer}))
}

func TestBroker(t *testing.T) {
	e := newExchanger(t)
	t.Run("RS-202 RFC 8693 2.1: the caller's token is shown to its issuer, by this server's client, for the provider",
		func(t *testing.T) {
			b := newBroker(t, e, nil)
			got, err := b.Token(calling(e, "mcp-token", "grt_1"), "github", "user", "repo", "user")
			if err != nil {
				t.Fatal(err)
			}
			if got.AccessToken != "upstream of mcp-token" || got.TokenType != "Bearer" ||
				got.Scopes.String() != "repo user" || time.Until(got.Expiry) < 59*time.Minute {
				t.Errorf("got %#v %v", *got, got.Expiry)
			}
			id, secret, _ := e.last.BasicAuth()
			if id != "rs" || secret != "s%2B1" {
				t.Errorf("authenticated as %q %q", id, secret)
			}
			want := "audience=github&grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&scope=repo+user&subject_token=mcp-token&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token"
			if e.last.PostForm.Encode() != want {
				t.Errorf("got %s", e.last.PostForm.Encode())
			}
		})
	t.Run("RS-203 a token is remembered for person, grant, provider and scopes, and for no other", func(t *testing.T) {
		b := newBroker(t, e, nil)
		before := e.asked.Load()
		ask := func(ctx context.Context, provider string, scopes ...string) string {
			t.Helper()
			got, err := b.Token(ctx, provider, scopes...)
			if err != nil {
				t.Fatal(err)
			}
			return got.AccessToken
		}
		ask(calling(e, "one", "grt_1"), "github", "a", "b")
		if got := ask(calling(e, "refreshed", "grt_1"), "github", "b", "a"); got != "upstream of one" ||
			e.asked.Load() != before+1 {
			t.Errorf("the same again: got %q after %d questions", got, e.asked.Load()-before)
		}
		bob := &token.Principal{
			Issuer: e.URL, Subject: "bob", ClientID: "app", Claims: json.RawMessage(`{"gid":"grt_1"}`),
		}
		own := token.WithCredential(bob, token.Credential{Token: "bobs"})
		ask(token.NewContext(t.Context(), own), "github", "a", "b")
		ask(calling(e, "one", "grt_2"), "github", "a", "b")
		ask(calling(e, "one", "grt_1"), "google", "a", "b")
		ask(calling(e, "one", "grt_1"), "github", "a")
		if n := e.asked.Load() - before; n != 5 {
			t.Errorf("asked %d times, want 5", n)
		}
		b.Forget(calling(e, "one", "grt_1"), "github", "a")
		ask(calling(e, "one", "grt_1"), "github", "a")
		if n := e.asked.Load() - before; n != 6 {
			t.Errorf("asked %d times after forgetting, want 6", n)
		}
	})
	t.Run("RS-202 a caller has what it presented for itself alone", func(t *testing.T) {
		shared := &token.Principal{Issuer: e.URL, Subject: "alice"}
		if a, b := token.WithCredential(shared, token.Credential{Token: "a"}),
			token.WithCredential(shared, token.Credential{Token: "b"}); token.PresentedToken(a) != "a" ||
			token.PresentedToken(b) != "b" || token.PresentedToken(shared) != "" {
			t.Error("principals share their values")
		}
	})
}

func TestBrokerTime(t *testing.T) {
	e := newExchanger(t)
	now := time.Now()
	life := 3600
	e.answer = func(*http.Request) (int, string) {
		return 200, fmt.Sprintf(`{"access_token":"u","token_type":"Bearer","expires_in":%d}`, life)
	}
	asks := func(b *Broker) bool {
		t.Helper()
		before := e.asked.Load()
		if _, err := b.Token(calling(e, "t", "g"), "github"); err != nil {
			t.Fatal(err)
		}
		return e.asked.Load() > before
	}
	clock := func(c *BrokerConfig) { c.Now = func() time.Time { return now } }
	t.Run("AS-219 what was taken back ends within CacheTTL", func(t *testing.T) {
		b := newBroker(t, e, clock)
		asks(b)
		now = now.Add(5*time.Minute - time.Second)
		if asks(b) {
			t.Error("asked before")
		}
		if now = now.Add(time.Second); !asks(b) {
			t.Error("not asked after")
		}
	})
	t.Run("AS-219 and a minute before it expires", func(t *testing.T) {
		life = 120
		b := newBroker(t, e, clock)
		asks(b)
		now = now.Add(59 * time.Second)
		if asks(b) {
			t.Error("asked before")
		}
		if now = now.Add(time.Second); !asks(b) {
			t.Error("not asked a minute before")
		}
		life = 60
		b = newBroker(t, e, clock)
		if asks(b); !asks(b) {
			t.Error("a token that is about to expire is remembered")
		}
	})
	t.Run("a negative CacheTTL asks every time", func(t *testing.T) {
		life = 3600
		b := newBroker(t, e, func(c *BrokerConfig) { c.CacheTTL = -1 })
		if asks(b); !asks(b) {
			t.Error("not asked")
		}
	})
	t.Run("RS-196 the memory is bounded", func(t *testing.T) {
		life = 3600
		b := newBroker(t, e, nil)
		for i := range 2 * brokerSize {
			b.cache.Put(fmt.Sprint(i), UpstreamToken{}, now.Add(time.Hour))
		}
		if n := b.cache.Len(); n > brokerSize {
			t.Errorf("%d entries", n)
		}
	})
}

func TestBrokerRefusals(t *testing.T) {
	e := newExchanger(t)
	b := newBroker(t, e, nil)
	ctx := calling(e, "mcp-token", "g")
	says := func(status int, body string) error {
		e.answer = func(*http.Request) (int, string) { return status, body }
		_, err := b.Token(ctx, "github")
		return err
	}
	t.Run("RS-200 interaction_required holds the page to visit", func(t *testing.T) {
		var need *InteractionRequiredError
		err := says(400, `{"error":"interaction_required","interaction_uri":"`+e.URL+`/connect/abc"}`)
		if !errors.As(err, &need) || need.URL != e.URL+"/connect/abc" || need.Provider != "github" ||
			!strings.Contains(err.Error(), need.URL) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("RS-201 a page elsewhere is not shown", func(t *testing.T) {
		for _, page := range []string{"https://evil.example.com/connect/abc", e.URL + ".evil.example.com/", ""} {
			var need *InteractionRequiredError
			if err := says(400, `{"error":"interaction_required","interaction_uri":"`+page+`"}`); errors.As(err,
				&need) || err == nil {
				t.Errorf("%q: got %v", page, err)
			}
		}
	})
	t.Run("the protocol's error is passed on", func(t *testing.T) {
		err := says(400, `{"error":"invalid_target","error_description":"no \"policy\""}`)
		if !errors.Is(err, oauth.NewError(oauth.InvalidTarget, "")) || errors.Is(err, ErrBrokerUnavailable) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("AS-223 an outage is told apart, and nothing of the answer is repeated", func(t *testing.T) {
		for status, body := range map[int]string{
			503: `{"error":"temporarily_unavailable"}`, 502: "secret detail", 200: "secret detail",
		} {
			if err := says(status, body); !errors.Is(err, ErrBrokerUnavailable) ||
				strings.Contains(err.Error(), "secret") {
				t.Errorf("%d: got %v", status, err)
			}
		}
		if err := says(200,
			`{"access_token":"u","issued_token_type":"urn:ietf:params:oauth:token-type:refresh_token"}`); !errors.Is(
			err, ErrBrokerUnavailable) {
			t.Errorf("another kind of token: got %v", err)
		}
	})
	t.Run("a refusal is not remembered", func(t *testing.T) {
		says(400, `{"error":"invalid_target"}`)
		if err := says(200, `{"access_token":"u"}`); err != nil {
			t.Error(err)
		}
	})
	t.Run("SP-06 a caller without a token at hand, or of another issuer, is shown to no server", func(t *testing.T) {
		before := e.asked.Load()
		foreign := &token.Principal{Issuer: "https://other.example.com", Subject: "alice"}
		for name, ctx := range map[string]context.Context{
			"none":    t.Context(),
			"by hand": token.NewContext(t.Context(), &token.Principal{Issuer: e.URL, Subject: "alice"}),
			"foreign": token.NewContext(t.Context(), token.WithCredential(foreign, token.Credential{Token: "t"})),
		} {
			if _, err := b.Token(ctx, "github"); !errors.Is(err, token.ErrNoCaller) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if _, err := b.Token(ctx, "github", "two words"); err == nil {
			t.Error("a malformed scope passes")
		}
		if e.asked.Load() != before {
			t.Error("a server was asked")
		}
	})
}

func TestBrokerSingleFlight(t *testing.T) {
	e := newExchanger(t)
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		e.answer = func(*http.Request) (int, string) { <-hold; return 200, `{"access_token":"u"}` }
		b := newBroker(t, e, func(c *BrokerConfig) { c.HTTPClient = &http.Client{Transport: e} })
		gone, leave := context.WithCancel(calling(e, "t", "g"))
		first := make(chan error, 1)
		go func() { _, err := b.Token(gone, "github"); first <- err }()
		synctest.Wait() // until the request waits for its answer
		leave()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that goes away gets %v", err)
		}
		var wg sync.WaitGroup
		for range 32 { // leaving does not cancel the others
			wg.Go(func() {
				got, err := b.Token(calling(e, "t", "g"), "github")
				if err != nil {
					t.Error(err)
					return
				}
				got.AccessToken = "changed by its owner"
			})
		}
		synctest.Wait() // until all wait for the same answer
		close(hold)
		wg.Wait()
		got, err := b.Token(calling(e, "t", "g"), "github") // each gets its own copy
		if err != nil || got.AccessToken != "u" || e.asked.Load() != 1 {
			t.Errorf("got %v %v, asked %d times", got, err, e.asked.Load())
		}
	})
}

func TestNewBroker(t *testing.T) {
	good := BrokerConfig{Issuer: "https://auth.example.com", ClientID: "rs", ClientSecret: "s"}
	for name, change := range map[string]func(*BrokerConfig){
		"no issuer": func(c *BrokerConfig) { c.Issuer = "" },
		"http":      func(c *BrokerConfig) { c.Issuer = "http://auth.example.com" },
		"endpoint":  func(c *BrokerConfig) { c.Endpoint = "http://auth.example.com/token" },
		"no client": func(c *BrokerConfig) { c.ClientID = "" },
		"no secret": func(c *BrokerConfig) { c.ClientSecret = "" },
	} {
		c := good
		change(&c)
		if _, err := NewBroker(c); err == nil {
			t.Errorf("%s passes", name)
		}
	}
	if _, err := NewBroker(good); err != nil {
		t.Error(err)
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
