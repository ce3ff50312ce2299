package signin

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
)

// TestMetadataOfAPath checks that the error for missing metadata of an issuer with a path names the
// required URL.
func TestMetadataOfAPath(t *testing.T) {
	w := newWorld(t, func(w *world) { w.prm["authorization_servers"] = []string{w.URL + "/tenant"} })
	var e *discovery.Error
	if err := signIn(t, w, w.URL+"/mcp"); !errors.As(err, &e) ||
		!strings.Contains(e.Advice, w.URL+"/.well-known/oauth-authorization-server/tenant ") {
		t.Errorf("RU-12: got %+v", e)
	}
}

// TestOddTokenAnswers checks that each faulty token response has a specific error, which does not
// contain the token.
func TestOddTokenAnswers(t *testing.T) {
	for body, want := range map[string]string{
		`{"access_token":"SECRET","token_type":"Bearer","expires_in":"3600"}`: "expires_in as a JSON string, which must be a whole number",
		`{"access_token":"SECRET","token_type":"Bearer","expires_in":3599.5}`: "expires_in as a JSON number, which must be a whole number",
		`{"access_token":"SECRET","token_type":"Bearer","scope":["a"]}`:       "scope as a JSON array, which must be a string",
		`{"access_token":4711,"token_type":"Bearer"}`:                         "access_token as a JSON number, which must be a string",
		`{"access_token":"SECRET"}`:                                           "has no token_type",
		`{"token_type":"Bearer"}`:                                             "has no access_token",
		`access_token=SECRET&token_type=bearer`:                               "is a form",
		`<html>SECRET</html>`:                                                 "is not a JSON object",
		`["SECRET"]`:                                                          "is not a JSON object",
		``:                                                                    "is not a JSON object",
		`{"error":"invalid_grant","error_description":"gone"}`:                "status 200 is an error: invalid_grant: gone",
		`{"access_token":"SECRET","token_type":"mac"}`:                        `token_type "mac"`,
	} {
		_, err := New().readToken([]byte(body))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SECRET") ||
			strings.Contains(err.Error(), "4711") {
			t.Errorf("RU-12: %s: got %v, want %q", body, err, want)
		}
	}
	if token, err := New().readToken([]byte(`{"access_token":"t","token_type":"bearer"}`)); err != nil ||
		token.TokenType != "Bearer" {
		t.Errorf("got %+v, %v", token, err)
	}
}
