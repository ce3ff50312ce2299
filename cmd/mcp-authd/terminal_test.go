package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/signin"
)

// hostileText renames a terminal's window, and overwrites the previous line.
const hostileText = "\x1b]0;owned\x07\x1b[1A\x1b[2Kok\u009b31m\u202e\r"

// plain fails the test if a terminal could interpret a text.
func plain(t *testing.T, what, text string) {
	t.Helper()
	for _, r := range text {
		if !unicode.IsPrint(r) && r != '\n' && r != '\t' {
			t.Errorf("%s: %q is printed: %q", what, r, text)
			return
		}
	}
}

// TestStrangersDoNotCommandTheTerminal checks that text from an MCP server and its authorization
// server is shown without effects (SP-17).
func TestStrangersDoNotCommandTheTerminal(t *testing.T) {
	var base string
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	base = s.URL
	say := func(status int, v any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(v)
		}
	}
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer scope=\"mcp\"")
		w.WriteHeader(http.StatusUnauthorized)
	})
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, r *http.Request) {
		say(200, map[string]any{
			"resource": base + "/mcp", "authorization_servers": []string{base},
			"scopes_supported": []string{hostileText},
		})(w, r)
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, r *http.Request) {
		say(200, map[string]any{
			"issuer": base, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token",
			"registration_endpoint": base + "/register", "code_challenge_methods_supported": []string{"S256"},
			"jwks_uri":                  base + "/keys" + hostileText,
			"protected_resource_scopes": map[string][]string{base + "/mcp": {"mcp"}},
		})(w, r)
	})
	mux.HandleFunc("/register",
		say(400, map[string]string{"error": "e" + hostileText, "error_description": hostileText}))

	_, out, errs := runs(t, nil, "check", base+"/mcp")
	if plain(t, "check", out+errs); !strings.Contains(out, "owned") {
		t.Errorf("check does not say what it found: %q", out)
	}
	if id := regexp.MustCompile(`\b(RS|AS|CL)-\d+`).FindString(out); id != "" {
		t.Errorf("check names %s, which means nothing to its reader: %q", id, out)
	}
	_, out, errs = runs(t, nil, "login", "--no-browser", base+"/mcp")
	if plain(t, "login", out+errs); !strings.Contains(errs, "owned") {
		t.Errorf("login does not say why it was refused: %q", errs)
	}
	var o strings.Builder
	l := &login{std: std{out: &o}}
	l.step(signin.StepTools, nil, "%s", hostileText)
	if plain(t, "a step", o.String()); !strings.Contains(o.String(), "owned") {
		t.Errorf("a step shows nothing: %q", o.String())
	}
	_, out, errs = runs(t, nil, "token", "inspect", hostileText, "--data", t.TempDir())
	plain(t, "an error", out+errs)
	_, out, errs = runs(t, nil, "user", "show", hostileText, hostileText)
	plain(t, "a wrong use", out+errs)
}

// TestLogsDoNotCommandTheTerminal checks untrusted text in a log line, including its message.
func TestLogsDoNotCommandTheTerminal(t *testing.T) {
	var o strings.Builder
	log := newLogger(std{err: &o}, config.Log{Level: "info", Format: "text"})
	log.Info("it says "+hostileText, "why", hostileText)
	if plain(t, "the log", o.String()); !strings.Contains(o.String(), "owned") {
		t.Errorf("got %q", o.String())
	}
}
