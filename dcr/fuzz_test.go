package dcr_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func FuzzRegistration(f *testing.F) {
	var zoo []struct{ Body json.RawMessage }
	readJSON(f, "testdata/clients.json", &zoo)
	for _, z := range zoo {
		f.Add(string(z.Body))
	}
	for _, s := range []string{
		``, `{}`, `null`, `[]`, `{"redirect_uris":null}`, `{"redirect_uris":[null]}`, `{"a":1,"a":2}`,
		`{` + loopback + `}x`,
		`{` + loopback + `,"jwks":{},"jwks_uri":"x"}`, `{` + loopback + `,"client_name":"\ud800\u202e"}`,
		`{"redirect\u005furis":["http://localhost"]}`,
		`{` + loopback +
			`,"token_endpoint_auth_method":"client_secret_post","contacts":["\u0000"],"client_uri":"http://[::1]/%zz"}`,
	} {
		f.Add(s)
	}
	r := newRig(f, func(c *dcr.Config) { c.Limits = dcr.Limits{PerMinute: 1e12, Burst: 1e9} })
	policy := oauth.RedirectPolicy{PrivateUseSchemes: oauth.DesktopSchemes}
	f.Fuzz(func(t *testing.T, body string) {
		w := r.send("POST", body)
		got := decode(t, w.Body.Bytes())
		switch w.Code {
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
			if d, _ := got["error_description"].(string); got["error"] == "" || d != oauth.SafeDescription(d) {
				t.Errorf("refused with %s", w.Body)
			}
			return
		case http.StatusCreated:
		default:
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
		uris := texts(got["redirect_uris"])
		for _, u := range uris {
			if err := policy.Check(u); err != nil {
				t.Errorf("registered %q: %v", u, err)
			}
		}
		c, err := r.Client(t.Context(), got["client_id"].(string))
		if err != nil || len(uris) == 0 || strings.Join(c.RedirectURIs, " ") != strings.Join(uris, " ") {
			t.Errorf("registered %v, resolved %+v, %v", uris, c, err)
		}
		if name, _ := got["client_name"].(string); name != c.Name {
			t.Errorf("registered %q, resolved %q", name, c.Name)
		}
		if scope, _ := got["scope"].(string); scope != c.Scopes.String() {
			t.Errorf("registered scope %q, resolved %q", scope, c.Scopes)
		}
	})
}

func FuzzClientID(f *testing.F) {
	r := newRig(f)
	own := r.register(f, `{`+loopback+`}`)["client_id"].(string)
	for _, s := range []string{
		own, own[:40], "mcp_", "mcp_AA==", "", "https://c.example/id", strings.Repeat("mcp_", 50), own + "\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		c, err := r.Client(t.Context(), id)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%q: got %v, want ErrNotFound", id, err)
		}
		if err == nil && (c.ID != id || len(c.RedirectURIs) != 1) {
			t.Errorf("%q: got %+v", id, c)
		}
	})
}
