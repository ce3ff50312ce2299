package clearance

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestNewClearances checks the requests to a remote authorization server, and which responses are
// accepted.
func TestNewClearances(t *testing.T) {
	var form url.Values
	status, answer := 200, ""
	as := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, secret, _ := r.BasicAuth(); name != "rs" || secret != "s" || r.Method != http.MethodPost {
			t.Errorf("%s by %s", r.Method, name)
		}
		_ = r.ParseForm()
		form = r.PostForm
		w.WriteHeader(status)
		_, _ = w.Write([]byte(strings.ReplaceAll(answer, "ISSUER", "http://"+r.Host)))
	}))
	defer as.Close()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	c, err := NewClearances(ClearancesConfig{
		Issuer: as.URL, Endpoint: as.URL + "/clearance", ClientID: "rs", ClientSecret: "s",
		Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	demand := oauth.ClearanceDemand{
		Resource: "https://mcp.example.com/mcp", Tool: "erase", Arguments: json.RawMessage(`{"b":"é"}`), By: "other",
		Approvers: []string{"olga", "otto"}, ACR: []string{"phr", "mfa"}, MaxAge: 90 * time.Second,
	}
	ctx := token.NewContext(t.Context(), &token.Principal{Issuer: as.URL})
	answer = `{"id":"c1","interaction_uri":"ISSUER/clearance/c1","expires_in":300}`
	got, err := c.Clear(ctx, "token", demand)
	want := oauth.Clearance{ID: "c1", URL: as.URL + "/clearance/c1", Expires: now.Add(5 * time.Minute)}
	if err != nil || got != want {
		t.Errorf("RS-217: got %+v, %v", got, err)
	}
	if want := (url.Values{
		"subject_token": {"token"}, "subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
		"resource": {"https://mcp.example.com/mcp"}, "tool": {"erase"}, "arguments": {`{"b":"é"}`}, "by": {"other"},
		"approvers": {"olga otto"}, "acr_values": {"phr mfa"}, "max_age": {"90"},
	}); !reflect.DeepEqual(form, want) {
		t.Errorf("RS-217: asked %v", form)
	}
	least := oauth.ClearanceDemand{Resource: "https://mcp.example.com/mcp", Tool: "erase", By: "person"}
	if _, err := c.Clear(ctx, "token", least); err != nil || len(form) != 5 {
		t.Errorf("asked %v: %v", form, err)
	}
	for _, tt := range []struct {
		name   string
		status int
		answer string
		want   oauth.Clearance
		err    error
		code   oauth.Code
	}{
		{"given", 200, `{"id":"c1","cleared":true,"expires_in":9223372036854775807}`,
			oauth.Clearance{ID: "c1", Cleared: true, Expires: now.Add(5 * time.Minute)}, nil, ""},
		{"refused", 200, `{"id":"c1","refused":true}`, oauth.Clearance{ID: "c1", Refused: true}, nil, ""},
		{"a link elsewhere", 200, `{"id":"c1","interaction_uri":"https://evil.example.com/"}`,
			oauth.Clearance{}, token.ErrUnavailable, ""},
		{"a link beside the issuer", 200, `{"id":"c1","interaction_uri":"ISSUER.evil.example.com/"}`,
			oauth.Clearance{}, token.ErrUnavailable, ""},
		{"both", 200, `{"id":"c1","cleared":true,"refused":true}`, oauth.Clearance{}, token.ErrUnavailable, ""},
		{"nothing", 200, `{"cleared":true}`, oauth.Clearance{}, token.ErrUnavailable, ""},
		{"no JSON", 200, `cleared`, oauth.Clearance{}, token.ErrUnavailable, ""},
		{"too long", 400, `{"error":"invalid_request","error_description":"too long"}`,
			oauth.Clearance{}, nil, oauth.InvalidRequest},
		{"revoked", 400, `{"error":"invalid_grant"}`, oauth.Clearance{}, nil, oauth.InvalidGrant},
		{"too many wait", 429, `{"error":"slow_down"}`, oauth.Clearance{}, nil, oauth.SlowDown},
		{"a proxy that limits", 429, `{"error":"invalid_request"}`, oauth.Clearance{}, token.ErrUnavailable, ""},
		{"our secret is wrong", 401, `{"error":"invalid_client"}`, oauth.Clearance{}, token.ErrUnavailable, ""},
		{"an outage", 503, `{"error":"temporarily_unavailable"}`, oauth.Clearance{}, token.ErrUnavailable, ""},
		{"a proxy", 502, `<html>`, oauth.Clearance{}, token.ErrUnavailable, ""},
		{"no endpoint", 404, `not found`, oauth.Clearance{}, token.ErrUnavailable, ""},
	} {
		status, answer = tt.status, tt.answer
		got, err := c.Clear(ctx, "token", demand)
		var said *oauth.Error
		switch {
		case got != tt.want,
			tt.err != nil && !errors.Is(err, tt.err),
			tt.code != "" && (!errors.As(err, &said) || said.Code != tt.code || errors.Is(err, token.ErrUnavailable)),
			tt.err == nil && tt.code == "" && err != nil:
			t.Errorf("RS-217 %s: got %+v, %v", tt.name, got, err)
		}
	}
	form = nil
	stranger := token.NewContext(t.Context(), &token.Principal{Issuer: "https://auth.example.com"})
	if _, err := c.Clear(stranger, "token", demand); err == nil || form != nil {
		t.Errorf("RS-217: the token of another issuer was shown: %v %v", form, err)
	}
	if _, err := NewClearances(ClearancesConfig{Issuer: as.URL}); err == nil ||
		!strings.Contains(err.Error(), "the clearance endpoint needs ClientID and ClientSecret") {
		t.Errorf("got %v", err)
	}
}
