package authserver

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestPE02RelatedOrigins: browsers read at the root of the origin where else passkeys may be used.
func TestPE02RelatedOrigins(t *testing.T) {
	r := newRig(t)
	read := func(method, host string) *http.Response {
		req := httptest.NewRequest(method, "https://"+host+"/.well-known/webauthn", nil)
		w := httptest.NewRecorder()
		r.mux.Load().ServeHTTP(w, req)
		return w.Result()
	}
	if got := read("GET", "127.0.0.1").StatusCode; got != http.StatusNotFound {
		t.Errorf("without passkeys: got %d", got)
	}
	r.restart(func(c *Config) { c.Issuer = "https://auth.example.com/deep" })
	if got := read("GET", "auth.example.com").StatusCode; got != http.StatusNotFound {
		t.Errorf("with nothing to list: got %d", got)
	}
	r.restart(func(c *Config) {
		c.SignIn.PasskeyRPID, c.SignIn.PreviousHosts = "example.com", []string{"old.example.org"}
	})
	for _, host := range []string{"auth.example.com", "old.example.org", "example.com"} {
		resp := read("GET", host)
		var doc struct {
			Origins []string `json:"origins"`
		}
		body, _ := io.ReadAll(resp.Body)
		err := json.Unmarshal(body, &doc)
		if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" ||
			!slices.Equal(doc.Origins, []string{"https://auth.example.com", "https://old.example.org"}) {
			t.Errorf("%s: got %d %s %v", host, resp.StatusCode, body, err)
		}
	}
	if got := read("POST", "auth.example.com").StatusCode; got != http.StatusMethodNotAllowed {
		t.Errorf("POST: got %d", got)
	}
}

func TestSignInPolicyIsChecked(t *testing.T) {
	for want, policy := range map[string]SignInPolicy{
		"is off, optional or required": {SecondFactor: "enrolled"},
		"for administrators enrolled":  {AdminsSecondFactor: "never"},
		"nor a domain above it":        {PasskeyRPID: "example.net"},
		"not a host name":              {PreviousHosts: []string{"https://x"}},
	} {
		c, err := Config{Issuer: "https://auth.example.com", SignIn: policy}.withDefaults()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", c.SignIn, err, want)
		}
	}
}
