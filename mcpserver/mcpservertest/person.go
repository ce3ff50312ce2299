package mcpservertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/oauth2"

	"github.com/mcp-authd/mcp-authd/internal/visit"
)

// Person is a user of a [Server].
type Person struct {
	server  *Server
	browser *visit.Person
}

// Approve connects a new application: the user signs in on the pages and approves the scopes, or
// without scopes those that the server suggests. Approve returns the application's client, whose
// requests carry the access token, and which refreshes it. The test fails if the pages do not lead
// back to the application.
func (p *Person) Approve(scopes ...string) *http.Client {
	p.server.t.Helper()
	client, err := p.connect(p.server.t.Context(), scopes)
	if err != nil {
		p.server.t.Fatalf("mcpservertest: %s cannot connect an application: %v", p.browser.Username, err)
	}
	return client
}

// Pages returns the text of the pages that the user has seen, in HTML.
func (p *Person) Pages() string { return strings.Join(p.browser.Pages, "\n") }

// redirectURI is where the pages lead. Nobody listens there: visit stops before.
const redirectURI = "http://127.0.0.1/callback"

func (p *Person) connect(ctx context.Context, scopes []string) (*http.Client, error) {
	issuer := p.server.Issuer
	id, err := register(ctx, issuer)
	if err != nil {
		return nil, err
	}
	config := oauth2.Config{
		ClientID: id, RedirectURL: redirectURI, Scopes: scopes,
		Endpoint: oauth2.Endpoint{
			AuthURL: issuer + "/authorize", TokenURL: issuer + "/token", AuthStyle: oauth2.AuthStyleInParams,
		},
	}
	verifier, resource := oauth2.GenerateVerifier(), oauth2.SetAuthURLParam("resource", p.server.URL)
	back, err := p.browser.Visit(config.AuthCodeURL("state", oauth2.S256ChallengeOption(verifier), resource))
	if err != nil {
		return nil, err
	}
	answer := back.Query()
	if code := answer.Get("error"); code != "" {
		return nil, fmt.Errorf("the answer is %s: %s", code, answer.Get("error_description"))
	}
	if answer.Get("state") != "state" || answer.Get("iss") != issuer {
		return nil, fmt.Errorf("the answer has the wrong state or iss: %s", back)
	}
	token, err := config.Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(verifier), resource)
	if err != nil {
		return nil, err
	}
	return config.Client(context.WithoutCancel(ctx), token), nil
}

// register registers an application and returns its client ID (RFC 7591).
func register(ctx context.Context, issuer string) (id string, err error) {
	body, err := json.Marshal(map[string]any{
		"client_name": "mcpservertest", "redirect_uris": []string{redirectURI}, "token_endpoint_auth_method": "none",
		"grant_types": []string{"authorization_code", "refresh_token"},
	})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, issuer+"/register", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var client struct {
		ID    string `json:"client_id"`
		Error string `json:"error_description"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&client); err != nil || client.ID == "" {
		return "", fmt.Errorf("the registration is answered with %s: %s", resp.Status, client.Error)
	}
	return client.ID, nil
}
