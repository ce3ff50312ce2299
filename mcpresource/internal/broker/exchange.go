package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/issuer"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// fetch exchanges the token (RFC 8693 §2.1) and caches the result.
func (b *Broker) fetch(ctx context.Context, ask brokerRequest) (UpstreamToken, error) {
	asked := b.c.Now()
	form := url.Values{
		"grant_type":         {oauth.GrantTokenExchange},
		"audience":           {ask.provider}, // the provider that the token is for
		"subject_token":      {ask.subject},
		"subject_token_type": {oauth.TokenTypeAccess},
	}
	if len(ask.scopes) > 0 {
		form.Set("scope", ask.scopes.String())
	}
	status, body, err := b.endpoint.Post(ctx, form)
	switch {
	case err != nil:
		return UpstreamToken{}, fmt.Errorf("%w: %w", ErrBrokerUnavailable, err)
	case status != http.StatusOK:
		return UpstreamToken{}, b.refused(status, body, ask.provider)
	}
	t, err := readToken(body, asked)
	if err != nil {
		return UpstreamToken{}, fmt.Errorf("%w: %w", ErrBrokerUnavailable, err)
	}
	b.cache.Put(ask.key, t, b.until(t, asked))
	return t, nil
}

func (b *Broker) until(t UpstreamToken, now time.Time) time.Time {
	until := now.Add(b.c.CacheTTL)
	if last := t.Expiry.Add(-brokerMargin); !t.Expiry.IsZero() && last.Before(until) {
		return last
	}
	return until
}

// exchangeTimeout leaves the authorization server time for a refresh at the provider.
const exchangeTimeout = 20 * time.Second

// readToken reads a token exchange response (RFC 8693 §2.2.1).
func readToken(body []byte, now time.Time) (UpstreamToken, error) {
	var answer struct {
		AccessToken string        `json:"access_token"`
		IssuedType  string        `json:"issued_token_type"`
		TokenType   string        `json:"token_type"`
		ExpiresIn   int64         `json:"expires_in"`
		Scope       issuer.Scopes `json:"scope"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return UpstreamToken{}, errors.New("the answer is not JSON") // never quote the body
	}
	if answer.AccessToken == "" || answer.IssuedType != "" && answer.IssuedType != oauth.TokenTypeAccess {
		return UpstreamToken{}, errors.New("the answer holds no access token")
	}
	t := UpstreamToken{AccessToken: answer.AccessToken, TokenType: answer.TokenType, Scopes: oauth.Scopes(answer.Scope)}
	if t.TokenType == "" || strings.EqualFold(t.TokenType, "bearer") {
		t.TokenType = "Bearer"
	}
	if answer.ExpiresIn > 0 {
		t.Expiry = now.Add(time.Duration(answer.ExpiresIn) * time.Second)
	}
	return t, nil
}

// refused reads an error response (RFC 6749 §5.2). A link must be within the issuer, because users
// see it as the issuer's.
func (b *Broker) refused(status int, body []byte, provider string) error {
	var answer struct {
		Code        oauth.Code `json:"error"`
		Description string     `json:"error_description"`
		Interaction string     `json:"interaction_uri"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Code == "" {
		return fmt.Errorf("%w: the token endpoint answered %d", ErrBrokerUnavailable, status)
	}
	err := oauth.NewError(answer.Code, oauth.SafeDescription(answer.Description))
	switch {
	case answer.Code == oauth.InteractionRequired && strings.HasPrefix(answer.Interaction, b.c.Issuer+"/"):
		return &InteractionRequiredError{Provider: provider, URL: answer.Interaction}
	case status >= http.StatusInternalServerError || status == http.StatusTooManyRequests:
		return fmt.Errorf("%w: %w", ErrBrokerUnavailable, err)
	}
	return fmt.Errorf("mcpresource: no token of %s: %w", provider, err)
}
