package assembly

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// broker returns the configured source of provider tokens for an upstream, or nil. The gateway acts
// as the resource server in the token exchange (RFC 8693), with a configured client.
func broker(as *authserver.Server, b config.UpstreamBroker) (gateway.TokenSource, error) {
	if b.Provider == "" {
		return nil, nil
	}
	broker, err := mcpresource.NewBroker(mcpresource.BrokerConfig{
		Issuer: as.Issuer(), Endpoint: as.Issuer() + "/token", ClientID: b.ClientID,
		ClientSecret: string(b.ClientSecret),
		HTTPClient:   &http.Client{Transport: inProcess{as.Handler()}},
	})
	if err != nil {
		return nil, err
	}
	return brokered{broker}, nil
}

// inProcess sends requests directly to a handler, because the authorization server may be unable to
// reach itself by its public name.
type inProcess struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.RequestURI, in.RemoteAddr, in.Host = r.URL.RequestURI(), "127.0.0.1:0", r.URL.Host
	out := answer{header: http.Header{}}
	p.ServeHTTP(&out, in)
	out.WriteHeader(http.StatusOK)
	return &http.Response{
		Status: http.StatusText(out.status), StatusCode: out.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: out.header, Body: io.NopCloser(&out.body), ContentLength: int64(out.body.Len()), Request: r,
	}, nil
}

// answer is the response of a handler.
type answer struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// tokens is the interface of *mcpresource.Broker.
type tokens interface {
	Token(ctx context.Context, provider string, scopes ...string) (*mcpresource.UpstreamToken, error)
}

// brokered converts the results of a broker for the gateway.
type brokered struct{ tokens }

// Token implements gateway.TokenSource.
func (b brokered) Token(ctx context.Context, provider string, scopes ...string) (string, error) {
	t, err := b.tokens.Token(ctx, provider, scopes...)
	var interaction *mcpresource.InteractionRequiredError
	switch {
	case errors.As(err, &interaction):
		return "", &gateway.InteractionRequired{
			Message: "Access to your " + interaction.Provider + " account is needed first.", URL: interaction.URL,
		}
	case err != nil:
		return "", err
	}
	return t.TokenType + " " + t.AccessToken, nil
}
