package provider

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
)

// TestWordsOfTokenEndpoints: RU-12: a description from the token endpoint reaches the
// administrator. It is printable, bounded and free of the request's secrets.
func TestWordsOfTokenEndpoints(t *testing.T) {
	u := fakeidp.Start(t)
	for _, tt := range []struct {
		name   string
		fault  fakeidp.Fault
		want   error
		says   string
		hidden string
	}{
		{"an expired secret", fakeidp.Fault{Status: 401,
			Body: `{"error":"invalid_client","error_description":"AADSTS7000222: The provided keys are expired."}`},
			ErrMisconfigured, "invalid_client (401): AADSTS7000222: The provided keys are expired.", ""},
		{"a refusal of the person", fakeidp.Fault{Status: 400,
			Body: `{"error":"invalid_grant","error_description":"AADSTS50076: use MFA"}`},
			ErrDenied, "invalid_grant (400): AADSTS50076: use MFA", ""},
		{"the secret itself", fakeidp.Fault{Status: 401,
			Body: `{"error":"invalid_client","error_description":"not ` + u.ClientSecret + `"}`},
			ErrMisconfigured, "not [secret]", u.ClientSecret},
		{"control characters", fakeidp.Fault{Status: 400,
			Body: `{"error":"invalid_client","error_description":"a\u001b[31m\nb"}`}, ErrMisconfigured, "a?[31m?b", "\x1b"},
		{"too many words", fakeidp.Fault{Status: 400,
			Body: `{"error":"invalid_client","error_description":"` + strings.Repeat("x", 5000) + `"}`},
			ErrMisconfigured, "xxx...", strings.Repeat("x", 301)},
		{"an HTML page", fakeidp.Fault{Status: 403, Body: "<html>Cookies</html>", Type: "text/html"},
			ErrMisconfigured, "no error code (403)", "Cookies"},
	} {
		t.Run("RU-12 "+tt.name, func(t *testing.T) {
			u.Fail(fakeidp.Token, tt.fault)
			defer u.Heal()
			_, _, err := travel(t, connect(t, toFake(u)), u, nil)
			wantError(t, err, tt.want)
			if !strings.Contains(err.Error(), tt.says) || tt.hidden != "" && strings.Contains(err.Error(), tt.hidden) {
				t.Errorf("got %q, want %q and not %q", err, tt.says, tt.hidden)
			}
		})
	}
}

// answering is a transport with one fixed response.
type answering struct{ *http.Response }

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return a.Response, nil }

// TestOddTokenAnswers: RU-12: JSON as text/plain and an expires_in with a fraction are accepted.
func TestOddTokenAnswers(t *testing.T) {
	for _, tt := range []struct{ kind, expires string }{
		{"text/plain; charset=utf-8", "3599"}, {"text/plain", "3599.5"}, {"application/json", "3599.5"},
		{"application/json", `"3599"`}, {"application/json", "3.5995e3"},
	} {
		answer := http.Response{
			StatusCode: 200, Header: http.Header{"Content-Type": {tt.kind}},
			Body: io.NopCloser(strings.NewReader(
				`{"access_token":"a","token_type":"Bearer","scope":"x","expires_in":` + tt.expires + `}`)),
		}
		got, err := tokenAnswers{answering{&answer}}.RoundTrip(&http.Request{})
		if err != nil {
			t.Fatal(err)
		}
		read, err := io.ReadAll(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		want := `"expires_in":3599`
		if tt.expires == `"3599"` {
			want = `"expires_in":"3599"`
		}
		if text := string(read); got.Header.Get("Content-Type") == "text/plain" || !strings.Contains(text, want) ||
			strings.Contains(text, ".5") || !strings.Contains(text, `"access_token":"a"`) {
			t.Errorf("RU-12 %s with %s: got %s", tt.kind, tt.expires, text)
		}
	}
	u := fakeidp.Start(t)
	u.Behave(func(b *fakeidp.Behaviour) {
		b.EditIDToken = func(_, c map[string]any) { c["aud"] = []string{u.ClientID, "urn:tenant"} }
	})
	_, _, err := travel(t, connect(t, toFake(u)), u, nil)
	if wantError(t, err, ErrGarbage); !strings.Contains(err.Error(), "no azp") ||
		!strings.Contains(err.Error(), "urn:tenant") {
		t.Errorf("RU-12 several audiences without azp: got %q", err)
	}
}
