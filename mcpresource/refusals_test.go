package mcpresource

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestRefusalsAreLogged: RU-11: a guard with a logger logs the reason of each 401 and 403 and the
// expected value. No line contains a token.
func TestRefusalsAreLogged(t *testing.T) {
	var log bytes.Buffer
	s := newSignerServer(t)
	keycloak := s.token(t, "ES256", nil, s.claims(), "typ", "JWT")
	untyped := s.token(t, "ES256", nil, s.claims(), "typ", "")
	elsewhere := s.token(t, "ES256", nil, s.claims("aud", []string{"account", "api://other"}))
	stranger := s.token(t, "ES256", nil, s.claims("iss", "https://evil.example"))
	old := s.token(t, "ES256", nil, s.claims("exp", time.Now().Add(-time.Hour).Unix()))
	r := newRig(t, func(c *Config) {
		v, err := NewJWTValidator(JWTConfig{Issuer: s.URL})
		if err != nil {
			t.Fatal(err)
		}
		c.Now, c.Validator, c.AuthorizationServers = time.Now, v, []string{s.URL}
		c.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	})
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write_file"}}`
	for _, tt := range []struct {
		name, header, value string
		status              int
		outcome             string
		want                []string
	}{
		{"no header", "X-Nothing", "1", 401, "unauthenticated", []string{"no Authorization header"}},
		{"a type of Keycloak, Entra, Auth0 and Okta", "Authorization", "Bearer " + keycloak, 401, "invalid_token",
			[]string{`typ is "JWT", want "at+jwt"`, "InsecureAllowUntyped", "docs/adapters.md"}},
		{"no type", "Authorization", "Bearer " + untyped, 401, "invalid_token", []string{`typ is "", want "at+jwt"`}},
		{"another audience", "Authorization", "Bearer " + elsewhere, 401, "invalid_token",
			[]string{`aud is "account api://other", want "` + resource + `"`}},
		{"another issuer", "Authorization", "Bearer " + stranger, 401, "invalid_token",
			[]string{`iss is "https://evil.example", want "` + s.URL + `"`}},
		{"an expired token", "Authorization", "Bearer " + old, 401, "invalid_token",
			[]string{"expired: exp is 20", "it is 20"}},
		{"no JWT", "Authorization", "Bearer opaque-secret", 401, "invalid_token", []string{"not a signed JWT"}},
		{"no scheme", "Authorization", "opaque-secret", 400, "malformed", []string{"one word", `want "Bearer TOKEN"`}},
		{"another scheme", "Authorization", "Token opaque-secret", 400, "malformed", []string{"another scheme"}},
		{"a password", "Authorization", "Basic opaque-secret", 400, "malformed", []string{"scheme Basic"}},
		{"several words", "Authorization", "Bearer opaque-secret another-secret", 400, "malformed",
			[]string{"more than two words"}},
		{"a foreign Host", "Host", "evil.example:8080", 403, "host",
			[]string{`Host is "evil.example:8080", want "mcp.example.com"`, "Config.Hosts"}},
		{"a foreign Origin", "Origin", "https://evil.example", 403, "origin",
			[]string{`Origin is "https://evil.example", want "https://mcp.example.com"`, "Config.Origins"}},
		{"too few scopes", "Authorization", "Bearer " + s.token(t, "ES256", nil, s.claims()), 403, "insufficient_scope",
			nil},
	} {
		t.Run("RU-11 "+tt.name, func(t *testing.T) {
			log.Reset()
			req := httptest.NewRequest(http.MethodPost, "https://mcp.example.com/mcp", strings.NewReader(body))
			req.Header.Set("Content-Type", "application/json")
			if req.Header.Set(tt.header, tt.value); tt.header == "Host" {
				req.Host = tt.value
			}
			w := httptest.NewRecorder()
			r.h.ServeHTTP(w, req)
			var line struct {
				Msg, Outcome, Reason string
				Status               int
			}
			if err := json.Unmarshal(log.Bytes(), &line); err != nil {
				t.Fatalf("want one line: %v in %s", err, log.String())
			}
			if w.Code != tt.status || line.Status != tt.status || line.Outcome != tt.outcome {
				t.Errorf("got %d and %+v, want %d %s", w.Code, line, tt.status, tt.outcome)
			}
			for _, want := range tt.want {
				if !strings.Contains(line.Reason, want) {
					t.Errorf("the reason %q lacks %q", line.Reason, want)
				}
			}
			if token := req.Header.Get("Authorization"); token != "" {
				word := token[strings.LastIndex(token, " ")+1:]
				if strings.Contains(log.String(), word) || strings.Contains(log.String(), "secret") {
					t.Errorf("the line has the token: %s", log.String())
				}
			}
		})
	}
	t.Run("RU-11 the lines are bounded, and those left out are counted", func(t *testing.T) {
		var log bytes.Buffer
		r := newRig(t, func(c *Config) {
			c.Logger, c.Limits.Strangers.PerSecond = slog.New(slog.NewJSONHandler(&log, nil)), -1
		})
		for range 100 {
			r.call("unknown", body)
		}
		if n := bytes.Count(log.Bytes(), []byte("\n")); n != 20 {
			t.Errorf("%d lines of 100 requests, want 20", n)
		}
		log.Reset()
		r.now = r.now.Add(2 * time.Second)
		r.call("unknown", body)
		if !strings.Contains(log.String(), `"omitted":80`) {
			t.Errorf("got %s, want it to count 80 lines", log.String())
		}
	})
}

// quoting is a custom Validator and Decisions whose errors quote the token.
type quoting struct {
	Validator
	reasons []string
}

// Validate implements Validator.
func (q *quoting) Validate(ctx context.Context, c Credential) (*Principal, error) {
	if p, err := q.Validator.Validate(ctx, c); err == nil {
		return p, nil
	}
	return nil, fmt.Errorf("%w: introspecting %q: unknown", ErrInvalidToken, c.Token)
}

// Refused implements Decisions.
func (q *quoting) Refused(_ *http.Request, d oauth.Decision) string {
	q.reasons = append(q.reasons, d.Reason)
	return "ref1"
}

// LetThrough implements Decisions.
func (q *quoting) LetThrough(context.Context, oauth.Decision) {}

// TestTokenIsRedacted: RU-11. A token quoted by a custom Validator reaches no log line, decision,
// audit event or response, and no caller of Verify and Recheck.
func TestTokenIsRedacted(t *testing.T) {
	const secret = "secret-token"
	var log bytes.Buffer
	q, known := &quoting{}, true
	r := newRig(t, func(c *Config) {
		all := c.Validator
		q.Validator = ValidatorFunc(func(ctx context.Context, c Credential) (*Principal, error) {
			if c.Token = "alice"; !known {
				c.Token = "nobody"
			}
			return all.Validate(ctx, c)
		})
		c.Validator, c.Logger = q, slog.New(slog.NewJSONHandler(&log, nil))
	})
	r.next = func(_ http.ResponseWriter, req *http.Request) {
		known = false
		if err := r.Recheck(req.Context(), Operation{Method: "tools/list"}); !errors.Is(err, ErrInvalidToken) ||
			strings.Contains(err.Error(), secret) {
			t.Errorf("Recheck: got %v", err)
		}
	}
	r.call(secret, tool("read"))
	if _, err := r.Verify(t.Context(), Credential{Token: secret}); !errors.Is(err, ErrInvalidToken) ||
		strings.Contains(err.Error(), secret) {
		t.Errorf("Verify: got %v", err)
	}
	for _, body := range []string{tool("read"), "", "["} {
		w := r.call(secret, body)
		if w.Code != 401 || strings.Contains(w.Body.String()+fmt.Sprint(w.Header()), secret) {
			t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
		}
	}
	if text := log.String(); strings.Count(text, "[token]") != 3 || strings.Contains(text, secret) {
		t.Errorf("the lines are %s", text)
	}
	if len(q.reasons) != 3 || strings.Contains(strings.Join(q.reasons, ""), secret) {
		t.Errorf("the decisions are %q", q.reasons)
	}
	for _, e := range r.events {
		if e.Err != nil && strings.Contains(e.Err.Error(), secret) {
			t.Errorf("the audit has %v", e.Err)
		}
	}
}

// TestOrderOfSteps: the comment of judge names the steps in the order in which they run.
func TestOrderOfSteps(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "protect.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var named, run []string
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "judge" {
			continue
		}
		for line := range strings.Lines(f.Doc.Text()) {
			if name, ok := strings.CutPrefix(line, "\t"); ok && name[0] != ' ' {
				named = append(named, strings.Fields(name)[0])
			}
		}
	}
	for _, s := range newRig(t, nil).steps {
		run = append(run, reflect.Indirect(reflect.ValueOf(s)).Type().Name())
	}
	if !slices.Equal(named, run) {
		t.Errorf("the comment names %v, the steps are %v", named, run)
	}
}
