package lab

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/idptest"
)

// failures returns a line for each failed result.
func failures(r Report) (out []string) {
	for _, x := range r.Results {
		if x.Verdict == Fail {
			out = append(out, x.Requirement+" "+x.What+": "+x.Why)
		}
	}
	return out
}

func TestOurselves(t *testing.T) {
	d := demotest.Start(t, demotest.Options{})
	person := d.Person()
	visits := 0
	r, err := Run(t.Context(), d.Issuer, Options{
		Resource: d.MCPURL,
		Visit: func(_ context.Context, at string) (*url.URL, error) {
			visits++
			return person.Visit(at)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range failures(r) {
		t.Errorf("DL-06 %s", f)
	}
	for _, x := range r.Results {
		// Errors for self-registered clients stay on a page. A used refresh token gets the same
		// response for a minute.
		if x.Verdict == Skipped && x.Requirement != "AS-42" && x.Requirement != "AS-95" {
			t.Errorf("DL-06 %s was skipped: %s", x.Requirement, x.Why)
		}
	}
	if r.Failed() || r.Count(Pass) < 60 || visits != 4 || r.Requests > MaxRequests {
		t.Errorf("DL-06 %d passed, %d visits, %d requests", r.Count(Pass), visits, r.Requests)
	}
}

// TestForeignServers tests other products, set up for ordinary OpenID Connect clients.
func TestForeignServers(t *testing.T) {
	lacks := map[string][]string{
		"Dex":                {"AS-18", "AS-26", "AS-46", "AS-61"},
		"node-oidc-provider": {"AS-46", "AS-54"},
	}
	for name, start := range map[string]func(testing.TB, idptest.Options) *idptest.Provider{
		"Dex": idptest.Dex, "node-oidc-provider": idptest.Node,
	} {
		t.Run("DL-06 "+name, func(t *testing.T) {
			p := start(t, idptest.Options{RedirectURIs: []string{redirectURI}})
			r, err := Run(t.Context(), p.Issuer, Options{
				ClientID: p.ClientID, ClientSecret: p.ClientSecret, RedirectURI: redirectURI,
			})
			if err != nil {
				t.Fatal(err)
			}
			verdicts := map[string]Verdict{}
			for _, x := range r.Results {
				if v := verdicts[x.Requirement]; v == "" || x.Verdict == Fail {
					verdicts[x.Requirement] = x.Verdict
				}
			}
			for _, id := range []string{
				"AS-14", "AS-20", "AS-23", "AS-24", "AS-32", "AS-33", "AS-37", "AS-40", "AS-53", "AS-03", "AS-38",
				"AS-83", "AS-85",
			} {
				if verdicts[id] != Pass {
					t.Errorf("%s: %s", id, verdicts[id])
				}
			}
			for _, id := range lacks[name] {
				if verdicts[id] != Fail {
					t.Errorf("%s: %s", id, verdicts[id])
				}
			}
			t.Logf("%s", strings.Join(failures(r), "\n"))
		})
	}
}

// sloppy starts an authorization server that violates many requirements.
func sloppy(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	reply := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, map[string]any{
			"issuer": s.URL + "/", "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token",
			"registration_endpoint": s.URL + "/register", "jwks_uri": s.URL + "/jwks",
			"introspection_endpoint":   "http://auth.example.com/introspect",
			"response_types_supported": []string{"code", "token"}, "grant_types_supported": []string{"password"},
			"scopes_supported": []string{}, "code_challenge_methods_supported": []string{"plain"},
		})
	})
	mux.HandleFunc("/jwks", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, map[string]any{"keys": []any{map[string]any{"kty": "oct", "k": "c2VjcmV0"}}})
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 201, map[string]any{"client_id": "same", "client_secret": "s", "redirect_uris": []string{redirectURI}})
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); {
		case q.Get("redirect_uri") != redirectURI:
			http.Redirect(w, r, q.Get("redirect_uri")+"?error=invalid_request", http.StatusFound)
		case q.Get("response_type") == "":
			http.Redirect(w, r, redirectURI+"?error=invalid_request&state=changed", http.StatusFound)
		default:
			w.Header().Set("Access-Control-Allow-Origin", "*")
			_, _ = w.Write([]byte("<form>"))
		}
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, map[string]any{}) })
	return s.URL
}

func TestSloppyServer(t *testing.T) {
	r, err := Run(t.Context(), sloppy(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(failures(r), "\n")
	for _, id := range []string{
		"AS-01", "AS-03", "AS-09", "AS-10", "AS-20", "AS-22", "AS-24", "AS-32", "AS-40", "AS-42", "AS-46", "AS-49",
		"AS-53",
		"AS-56", "AS-58", "AS-61", "AS-63", "AS-67", "AS-79", "AS-83", "AS-84", "AS-132", "AS-134", "AS-137", "AS-138",
		"AS-146", "AS-227",
	} {
		if !strings.Contains("\n"+got, "\n"+id+" ") {
			t.Errorf("DL-06 %s was not found", id)
		}
	}
	if !r.Failed() {
		t.Error("DL-06 it passed")
	}
}

// elsewhere is a transport to another machine's server with this consent.
type elsewhere struct {
	consent string
	asked   []string
}

func (e *elsewhere) RoundTrip(req *http.Request) (*http.Response, error) {
	e.asked = append(e.asked, req.URL.String())
	w := httptest.NewRecorder()
	if req.URL.Path == Consent && e.consent != "" {
		_, _ = w.WriteString(e.consent)
	} else {
		w.WriteHeader(http.StatusNotFound)
	}
	return w.Result(), nil
}

func TestConsent(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for text, consents := range map[string]bool{
		"": false, "mcp-authd lab": false, "mcp-authd lab until tomorrow": false,
		"mcp-authd lab until 2026-11-23\n": false, "mcp-authd lab until 2026-11-24\n": true,
		"# ours\n  mcp-authd lab until 2026-12-31  \n": true, "mcp-authd lab until 2028-01-01": false,
		"not mcp-authd lab until 2026-12-31": false,
	} {
		e := &elsewhere{consent: text}
		_, err := Run(t.Context(), "https://auth.example.com/a", Options{
			Now: func() time.Time { return now }, Transport: e,
		})
		if (err == nil) != consents || err != nil && !errors.Is(err, ErrNoConsent) {
			t.Errorf("DL-06 %q: %v", text, err)
		}
		if e.asked[0] != "https://auth.example.com"+Consent || !consents && len(e.asked) != 1 {
			t.Errorf("DL-06 %q: asked %v", text, e.asked)
		}
	}
	if _, err := Run(t.Context(), "http://auth.example.com", Options{Transport: &elsewhere{}}); err == nil ||
		!strings.Contains(err.Error(), "neither https nor on this machine") {
		t.Errorf("DL-06 plain http: %v", err)
	}
}

// TestOtherServersAreLeftAlone checks that requests stay at the tested origin: metadata can name
// any URL.
func TestOtherServersAreLeftAlone(t *testing.T) {
	e := &elsewhere{consent: "mcp-authd lab until 2026-12-31"}
	b, err := newBench("https://auth.example.com", Options{Now: time.Now, Transport: e})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{
		"https://victim.example.com/token", "http://127.0.0.1:1/token", "ftp://auth.example.com/",
	} {
		if _, err := b.post(t.Context(), at, "", nil); err == nil || len(e.asked) != 0 {
			t.Errorf("DL-06 %s: asked %v, %v", at, e.asked, err)
		}
	}
	here, err := newBench("http://127.0.0.1:1", Options{Now: time.Now, Transport: e})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"https://victim.example.com/", "http://127.0.0.1:2/", "http://localhost:1/"} {
		if _, err := here.get(t.Context(), at, nil); err == nil || len(e.asked) != 0 {
			t.Errorf("DL-06 from this machine, %s: asked %v, %v", at, e.asked, err)
		}
	}
	for range MaxRequests + 10 {
		_, _ = here.get(t.Context(), "http://127.0.0.1:1/", nil)
	}
	if len(e.asked) != MaxRequests || here.broken == nil {
		t.Errorf("DL-06 %d requests, %v", len(e.asked), here.broken)
	}
}

func TestEveryRequirementIsOurs(t *testing.T) {
	r, err := Run(t.Context(), sloppy(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Results {
		leveled := x.Level == must || x.Level == should
		if !strings.HasPrefix(x.Requirement, "AS-") || !leveled || x.What == "" {
			t.Errorf("%+v", x)
		}
	}
}
