package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// broker is what an upstream gets the tokens of a provider from, nil when none is
// configured. The gateway is then the resource server of the exchange (RFC 8693), with a
// client of the operator.
func (a *app) broker(as *authserver.Server, b config.UpstreamBroker) (gateway.TokenSource, error) {
	if b.Provider == "" {
		return nil, nil
	}
	broker, err := mcpresource.NewBroker(mcpresource.BrokerConfig{
		Issuer: as.Issuer(), Endpoint: as.Issuer() + "/token", ClientID: b.ClientID, ClientSecret: string(b.ClientSecret),
		HTTPClient: &http.Client{Transport: inProcess{as.Handler()}},
	})
	if err != nil {
		return nil, err
	}
	return brokered{broker}, nil
}

// inProcess sends requests to a handler: the authorization server need not be able to
// reach itself by its public name.
type inProcess struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.RequestURI, in.RemoteAddr, in.Host = r.URL.RequestURI(), "127.0.0.1:0", r.URL.Host
	w := httptest.NewRecorder()
	p.ServeHTTP(w, in)
	out := w.Result()
	out.Request = r
	return out, nil
}

// tokens is what *mcpresource.Broker does.
type tokens interface {
	Token(ctx context.Context, provider string, scopes ...string) (*mcpresource.UpstreamToken, error)
}

// brokered says in the gateway's terms what a broker says.
type brokered struct{ tokens }

// Token implements gateway.TokenSource.
func (b brokered) Token(ctx context.Context, provider string, scopes ...string) (string, error) {
	t, err := b.tokens.Token(ctx, provider, scopes...)
	var interaction *mcpresource.InteractionRequiredError
	switch {
	case errors.As(err, &interaction):
		return "", &gateway.InteractionRequired{Message: "Access to your " + interaction.Provider + " account is needed first.", URL: interaction.URL}
	case err != nil:
		return "", err
	}
	return t.TokenType + " " + t.AccessToken, nil
}
