package assembly

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

type someTokens struct {
	token *mcpresource.UpstreamToken
	err   error
}

func (s someTokens) Token(context.Context, string, ...string) (*mcpresource.UpstreamToken, error) {
	return s.token, s.err
}

// TestBrokered checks the conversion of a broker's results (RS-50, RS-200).
func TestBrokered(t *testing.T) {
	got, err := brokered{
		someTokens{token: &mcpresource.UpstreamToken{AccessToken: "t", TokenType: "Bearer"}}}.Token(t.Context(),
		"github")
	if got != "Bearer t" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	_, err = brokered{
		someTokens{err: &mcpresource.InteractionRequiredError{
			Provider: "github", URL: "https://auth.example.com/connect/x"}}}.Token(t.Context(), "github")
	var i *gateway.InteractionRequired
	if !errors.As(err, &i) || i.URL != "https://auth.example.com/connect/x" {
		t.Errorf("got %v", err)
	}
	if _, err = (brokered{someTokens{err: mcpresource.ErrBrokerUnavailable}}).Token(t.Context(),
		"github"); !errors.Is(err, mcpresource.ErrBrokerUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestInProcess(t *testing.T) {
	c := &http.Client{Transport: inProcess{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, r.Host+r.RequestURI+string(b))
	})}}
	resp, err := c.Post("https://auth.example.com/token?x=1", "text/plain", strings.NewReader("!"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusTeapot ||
		string(b) != "auth.example.com/token?x=1!" {
		t.Errorf("got %s %s", resp.Status, b)
	}
}
