package assembly

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// delegationTo returns a read-only delegation.
func delegationTo(t *testing.T, up *fakeidp.Upstream, secret string) *thirdparty.Delegation {
	t.Helper()
	d, err := thirdparty.New(thirdparty.Config{
		Issuer: "http://127.0.0.1:8414", Store: struct{ thirdparty.Store }{}, SecretKeys: [][]byte{make([]byte, 32)},
		Connectors: []thirdparty.Connector{
			{ID: "corp", Type: "oidc", Name: "Corp", ClientID: up.ClientID, ClientSecret: secret, Issuer: up.URL},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestProvidersAreExaminedAtTheStart(t *testing.T) {
	up := fakeidp.Start(t)
	said := func(secret string) string {
		var log bytes.Buffer
		s := &Server{
			parts: Parts{Log: slog.New(slog.NewJSONHandler(&log, nil))}, delegation: delegationTo(t, up, secret),
		}
		s.examineProviders(t.Context())
		return log.String()
	}
	t.Run("a good one: nothing is said", func(t *testing.T) {
		if got := said(up.ClientSecret); got != "" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("a wrong secret: what doctor would say", func(t *testing.T) {
		if got := said("wrong"); !strings.Contains(got, `"level":"WARN"`) ||
			!strings.Contains(got, `"connector":"corp"`) || !strings.Contains(got, "client_secret") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("one that is away", func(t *testing.T) {
		up.FailAll(fakeidp.Down)
		if got := said(up.ClientSecret); !strings.Contains(got, "Can this machine reach") {
			t.Errorf("got %s", got)
		}
	})
}
