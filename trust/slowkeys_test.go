package trust

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/safehttp"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// stalled is the site of an issuer that does not come to an end: with its metadata, with the answer for
// its keys, or with their last byte.
func stalled(t *testing.T, at string) *httptest.Server {
	t.Helper()
	end := make(chan struct{})
	var s *httptest.Server
	wait := func(r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-end:
		}
	}
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case at == "metadata":
			wait(r)
		case r.URL.Path != "/keys":
			time.Sleep(keysTimeout / 2) // what is left is for the keys
			w.Write([]byte(`{"issuer":"` + s.URL + `","jwks_uri":"` + s.URL + `/keys"}`))
		case at == "body":
			for i := 0; i < 1000 && r.Context().Err() == nil; i++ {
				w.Write([]byte(" "))
				w.(http.Flusher).Flush()
				time.Sleep(50 * time.Millisecond)
			}
		default:
			wait(r)
		}
	}))
	t.Cleanup(func() {
		close(end)
		s.Close()
	})
	return s
}

// TestSlowKeys: AS-205, one reading takes up to five seconds, and no other issuer waits for it.
func TestSlowKeys(t *testing.T) {
	for _, at := range []string{"metadata", "answer", "body"} {
		t.Run("AS-205 an issuer that stalls with its "+at, func(t *testing.T) {
			t.Parallel()
			slow := stalled(t, at)
			r := newRig(t)
			e := r.entries[1]
			e.ID, e.Issuer, e.JWKS = "slow", slow.URL, ""
			r.entries = append(r.entries, e)
			i := r.issuers(t, nil)
			began, answered := time.Now(), make(chan *Refusal, 3)
			for range cap(answered) { // they wait for one reading
				raw := r.platform.sign(t, "", r.build().with(claims{"iss": slow.URL}))
				go func() {
					var got *Refusal
					_, err := i.Verify(t.Context(), raw)
					errors.As(err, &got)
					answered <- got
				}()
			}
			for range 20 {
				if _, refused := verify(t, i, r.platform.sign(t, "", r.build())); refused != nil {
					t.Fatal(refused)
				}
			}
			if took := time.Since(began); took > keysTimeout/2 {
				t.Errorf("others were answered after %s", took)
			}
			for range cap(answered) {
				got := <-answered
				if got == nil || got.Rule != RuleKeys || got.Code != oauth.TemporarilyUnavailable {
					t.Errorf("got %v, want temporarily_unavailable by the keys", got)
				}
			}
			if took := time.Since(began); took > keysTimeout+keysTimeout/2 {
				t.Errorf("answered after %s", took)
			}
		})
	}
}

// TestKeyErrors: AS-205, what is wrong with a place of keys is told by its own error.
func TestKeyErrors(t *testing.T) {
	p := newPublisher(t, "")
	r := newRig(t)
	p.set(jwks(t, r.platform)+strings.Repeat(" ", maxKeySet), http.StatusOK)
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
