package trust

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/safehttp"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// stalled is the site of an issuer that never completes a response: for its metadata, for its keys,
// or before the last byte of the keys. It sends on asked when it stalls.
func stalled(t *testing.T, at string) (s *httptest.Server, asked <-chan struct{}) {
	t.Helper()
	stalls, end := make(chan struct{}, 100), make(chan struct{})
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at != "metadata" && r.URL.Path != "/keys" {
			w.Write([]byte(`{"issuer":"` + s.URL + `","jwks_uri":"` + s.URL + `/keys"}`))
			return
		}
		if at == "body" {
			w.Write([]byte(" "))
			w.(http.Flusher).Flush()
		}
		stalls <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-end:
		}
	}))
	t.Cleanup(func() {
		close(end)
		s.Close()
	})
	return s, stalls
}

// TestSlowKeys: AS-205, a stalled read ends, and no other issuer waits for it.
func TestSlowKeys(t *testing.T) {
	for _, at := range []string{"metadata", "answer", "body"} {
		t.Run("AS-205 an issuer that stalls with its "+at, func(t *testing.T) {
			t.Parallel()
			slow, asked := stalled(t, at)
			r := newRig(t)
			e := r.entries[1]
			e.ID, e.Issuer, e.JWKS = "slow", slow.URL, ""
			r.entries = append(r.entries, e)
			i := r.issuers(t, nil)
			wait.Until(t, "another issuer's assertion is verified during a reading", func() bool {
				answered := make(chan *Refusal, 3)
				for range cap(answered) { // they share one read
					raw := r.platform.sign(t, "", r.build().with(claims{"iss": slow.URL}))
					go func() {
						var got *Refusal
						_, err := i.Verify(t.Context(), raw)
						errors.As(err, &got)
						answered <- got
					}()
				}
				<-asked
				if _, refused := verify(t, i, r.platform.sign(t, "", r.build())); refused != nil {
					t.Fatal(refused)
				}
				during := len(answered) == 0
				for range cap(answered) {
					got := <-answered
					if got == nil || got.Rule != RuleKeys || got.Code != oauth.TemporarilyUnavailable {
						t.Errorf("got %v, want temporarily_unavailable by the keys", got)
					}
				}
				r.now = r.now.Add(keysPause) // if the machine paused during the read, another read follows
				return during
			})
		})
	}
}

// TestKeyErrors: AS-205, each fault of a key location has its own error.
func TestKeyErrors(t *testing.T) {
	p := newPublisher(t, "")
	r := newRig(t)
	p.set(published(t, r.platform)+strings.Repeat(" ", maxKeySet), http.StatusOK)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Write([]byte(`{"issuer":"http://` + req.Host + `","jwks_uri":"http://tokens.example/keys"}`))
	}))
	t.Cleanup(plain.Close)
	for _, tt := range []struct {
		name, url, issuer string
		want              error
	}{
		{"larger than 256 KiB", p.URL + "/keys", platform, safehttp.ErrTooLarge},
		{"behind a redirect", p.URL + "/redirect", platform, safehttp.StatusError(http.StatusFound)},
		{"at a private address", "https://10.255.255.1/keys", platform, safehttp.ErrRefused},
		{"at a link-local address", "https://169.254.169.254/keys", platform, safehttp.ErrRefused},
		{"by http, as the metadata say", "", plain.URL, errNotHTTPS},
	} {
		t.Run("AS-205 keys "+tt.name, func(t *testing.T) {
			r, i := trusting(t, storage.TrustRules{JWKSURL: tt.url}, tt.issuer)
			_, err := i.Verify(t.Context(), r.platform.sign(t, "", r.build().with(claims{"iss": tt.issuer})))
			var got *Refusal
			if !errors.Is(err, tt.want) || !errors.As(err, &got) || got.Rule != RuleKeys {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	t.Run("AS-205 keys by http, as the entry says", func(t *testing.T) {
		e := r.entries[1]
		e.JWKS, e.JWKSURL = "", "http://tokens.example/keys"
		if _, err := Check(e); !errors.Is(err, errNotHTTPS) {
			t.Errorf("got %v, want %v", err, errNotHTTPS)
		}
	})
}
