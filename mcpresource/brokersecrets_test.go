package mcpresource

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

func TestBrokerKeepsSecrets(t *testing.T) {
	e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"access_token":"upstream of %s","token_type":"bearer","expires_in":3600}`,
			r.PostFormValue("subject_token"))
	}))
	defer e.Close()
	r := newRig(t, func(c *Config) {
		c.AuthorizationServers = []string{e.URL}
		c.Validator = ValidatorFunc(func(context.Context, Credential) (*Principal, error) {
			return &Principal{
				Issuer: e.URL, Subject: "alice", Scopes: oauth.Scopes{"mcp"}, Audience: []string{resource},
				ExpiresAt: time.Now().Add(time.Hour)}, nil
		})
		c.Now = time.Now
	})
	b, err := NewBroker(BrokerConfig{Issuer: e.URL, Endpoint: e.URL, ClientID: "rs", ClientSecret: "s+1"})
	if err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	r.next = func(_ http.ResponseWriter, req *http.Request) {
		ctx := req.Context()
		p, _ := FromContext(ctx)
		token, err := b.Token(ctx, "github")
		if err != nil {
			t.Error(err)
			return
		}
		for _, v := range []any{ctx, p, *p, req.Header, token, *token} {
			fmt.Fprintf(&printed, "%v %+v %#v\n", v, v, v)
			j, _ := json.Marshal(v)
			printed.Write(j)
			slog.New(slog.NewTextHandler(&printed, nil)).Info("x", "v", v)
			slog.New(slog.NewJSONHandler(&printed, nil)).Info("x", "v", v)
		}
		out := httptest.NewRequest("GET", "https://api.github.com/user", nil)
		token.SetAuthHeader(out)
		if out.Header.Get("Authorization") != "Bearer upstream of hush-hush" {
			t.Errorf("got %q", out.Header.Get("Authorization"))
		}
	}
	req := httptest.NewRequest("POST", resource,
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}`))
	req.Header.Set("Authorization", "Bearer hush-hush")
	w := httptest.NewRecorder()
	r.h.ServeHTTP(w, req)
	t.Run("RS-49 RS-202 behind the guard a tool gets upstream tokens, and cannot print either token by mistake",
		func(t *testing.T) {
			if printed.Len() == 0 {
				t.Fatalf("the handler was not reached: %d %s", w.Code, w.Body)
			}
			if strings.Contains(printed.String(), "hush-hush") {
				t.Errorf("a token was printed:\n%s", printed.String())
			}
		})
}
