package oauth_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// declaredCodes returns every constant of type Code in the source.
func declaredCodes(t *testing.T) []oauth.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []oauth.Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); ok && id.Name == "Code" {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, oauth.Code(value))
		}
		return true
	})
	if len(out) < 20 {
		t.Fatalf("found %d codes in error.go, the test no longer reads them", len(out))
	}
	return out
}

func TestErrorStatus(t *testing.T) {
	want := map[oauth.Code]int{
		oauth.InvalidClient:              http.StatusUnauthorized, // RFC 6749 §5.2
		oauth.InvalidToken:               http.StatusUnauthorized, // RFC 6750 §3.1
		oauth.InsufficientAuthentication: http.StatusUnauthorized, // RFC 9470 §3
		oauth.InsufficientScope:          http.StatusForbidden,    // RFC 6750 §3.1
		oauth.AccessDenied:               http.StatusForbidden,
		oauth.ServerError:                http.StatusInternalServerError,
		oauth.TemporarilyUnavailable:     http.StatusServiceUnavailable,
		oauth.SlowDown:                   http.StatusTooManyRequests,
	}
	for _, code := range declaredCodes(t) {
		t.Run("RFC 6749 5.2: every code has a status: "+string(code), func(t *testing.T) {
			status := http.StatusBadRequest // the default; want holds the exceptions
			if s, ok := want[code]; ok {
				status = s
			}
			if got := oauth.NewError(code, "").Status(); got != status {
				t.Errorf("got %d, want %d", got, status)
			}
		})
	}
	t.Run("a code outside the table is 500", func(t *testing.T) {
		if got := oauth.NewError("made_up", "").Status(); got != 500 {
			t.Errorf("got %d, want 500", got)
		}
	})
}

func TestErrorChain(t *testing.T) {
	cause := fmt.Errorf("row: %w", io.ErrUnexpectedEOF)
	plain := oauth.NewError(oauth.InvalidGrant, "The code is not valid.")
	wrapped := fmt.Errorf("token: %w", plain.Because(cause))

	if !errors.Is(wrapped, oauth.NewError(oauth.InvalidGrant, "")) {
		t.Error("errors.Is does not find the code")
	}
	if errors.Is(wrapped, oauth.NewError(oauth.InvalidClient, "")) {
		t.Error("errors.Is confuses codes")
	}
	if !errors.Is(wrapped, io.ErrUnexpectedEOF) || !strings.Contains(wrapped.Error(), "unexpected EOF") {
		t.Error("the cause is lost for the log")
	}
	if errors.Is(plain, io.ErrUnexpectedEOF) {
		t.Error("Because changed its receiver")
	}
	if got := oauth.AsError(wrapped); got.Code != oauth.InvalidGrant || got.Description != plain.Description {
		t.Errorf("AsError: got %v", got)
	}
}

// The text for the log is the code, followed by the description and the cause if present.
func TestErrorText(t *testing.T) {
	for want, e := range map[string]*oauth.Error{
		"invalid_grant":             oauth.NewError(oauth.InvalidGrant, ""),
		"invalid_grant: Not valid.": oauth.NewError(oauth.InvalidGrant, "Not valid."),
		"invalid_grant: unexpected EOF": oauth.NewError(oauth.InvalidGrant,
			"").Because(io.ErrUnexpectedEOF),
		"invalid_grant: Not valid.: unexpected EOF": oauth.NewError(oauth.InvalidGrant,
			"Not valid.").Because(io.ErrUnexpectedEOF),
	} {
		if got := e.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAsErrorHidesInternals(t *testing.T) {
	internal := errors.New(`pq: relation "secrets" does not exist`)
	got := oauth.AsError(internal)
	if got.Code != oauth.ServerError || strings.Contains(got.Description, "pq:") {
		t.Errorf("got %q %q, want server_error with a fixed sentence", got.Code, got.Description)
	}
	if !errors.Is(got, internal) {
		t.Error("the cause is lost for the log")
	}
}

func TestSafeDescription(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"plain text!", "plain text!"},
		{`say "hi" \ there`, `say 'hi' ' there`},
		{"line\r\nbreak\x00\x7f", "line??break??"},
		{"grüße", "gr??e"},
		{"bad\xffutf8", "bad?utf8"},
	} {
		t.Run("RFC 6749 5.2: characters of error_description", func(t *testing.T) {
			if got := oauth.SafeDescription(tt.in); got != tt.want {
				t.Errorf("SafeDescription(%q): got %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}
