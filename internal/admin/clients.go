package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Client is an OAuth client.
type Client struct {
	ID           string    `json:"id"`
	Name         string    `json:"name,omitempty"`
	Source       string    `json:"source"`
	AuthMethod   string    `json:"auth_method"`
	JWKSURI      string    `json:"jwks_uri,omitempty"`
	RedirectURIs []string  `json:"redirect_uris,omitempty"`
	GrantTypes   []string  `json:"grant_types"`
	Scopes       []string  `json:"scopes,omitempty"`
	Resources    []string  `json:"resources,omitempty"`
	RequirePAR   bool      `json:"require_par,omitempty"`
	DPoP         bool      `json:"dpop_bound_access_tokens,omitempty" jsonschema:"it gets only tokens that are bound to a key"`
	CreatedAt    time.Time `json:"created_at"`
	LastUsedAt   time.Time `json:"last_used_at,omitzero"`
	Secret       string    `json:"secret,omitempty" secret:"yes" jsonschema:"only in the response to client add and rotate-secret"`
	User         string    `json:"user,omitempty" jsonschema:"the user who made this key for a program"`
	UserName     string    `json:"user_name,omitempty"`
	Warnings     []string  `json:"warnings,omitempty" jsonschema:"names in it that are unknown here, after client add"`
}

func clientOf(c storage.Client) Client {
	return Client{
		ID: c.ID, Name: c.Name, Source: string(c.Source), AuthMethod: c.AuthMethod, JWKSURI: c.JWKSURI,
		RedirectURIs: c.RedirectURIs, GrantTypes: c.GrantTypes, Scopes: c.Scopes, Resources: c.Resources,
		RequirePAR: c.Demands().PushedRequests, DPoP: c.Demands().BoundTokens,
		CreatedAt: c.CreatedAt, LastUsedAt: c.LastUsedAt,
	}
}

// NewClient describes a client that an administrator creates. Every field has a default.
type NewClient struct {
	ID           string   `json:"id,omitempty" jsonschema:"client id; default random"`
	Name         string   `json:"name,omitempty" jsonschema:"display name"`
	RedirectURIs []string `json:"redirect_uris,omitempty" jsonschema:"redirect URIs, for a client that users sign in to"`
	GrantTypes   []string `json:"grant_types,omitempty" jsonschema:"grant types, such as authorization_code, device or client_credentials"`
	AuthMethod   string   `json:"auth_method,omitempty" jsonschema:"none, client_secret_basic, client_secret_post or private_key_jwt"`
	// JWKS holds the public keys for private_key_jwt.
	JWKS       map[string]any `json:"jwks,omitempty" jsonschema:"the public keys of private_key_jwt, a JSON Web Key Set"`
	JWKSURI    string         `json:"jwks_uri,omitempty" jsonschema:"https URL of the key set, instead of jwks"`
	Scopes     []string       `json:"scopes,omitempty" jsonschema:"scopes for client credentials; or openid, to sign users in"`
	Resources  []string       `json:"resources,omitempty" jsonschema:"MCP servers that it may request tokens for and introspect for"`
	RequirePAR bool           `json:"require_par,omitempty" jsonschema:"authorization requests must be pushed (RFC 9126)"`
	DPoP       bool           `json:"dpop_bound_access_tokens,omitempty" jsonschema:"issue only tokens that are bound to a key (RFC 9449)"`
}

// ClientID names a client.
type ClientID struct {
	ID string `json:"id" jsonschema:"the id of the client, or its name if it is unique"`
}

// ClientEnded is a deleted client, with the number of grants that ended with it.
type ClientEnded struct {
	ID    string     `json:"id"`
	Name  string     `json:"name,omitempty"`
	Ended GrantCount `json:"ended"`
}

// Operations on clients.
var (
	ClientAdd = define(Spec{
		Name: "client add", Method: "POST", Path: "/clients", Fresh: true, Secret: true,
		Summary: "Create a client; its secret is shown once",
		Details: "Creates a client of the operator. With redirect URIs, users sign in to it; without, it acts for\n" +
			"itself with client credentials. The secret cannot be shown again.",
	}, (*Service).addClient)
	ClientList = define(Spec{
		Name: "client list", Method: "GET", Path: "/clients", Roles: reading, Summary: "List clients",
		Details: "Lists clients: the operator's clients from the configuration and the store, clients that registered\n" +
			"themselves and were approved by a user at least once, and the keys that users made for programs. You\n" +
			"can search for a text in the name or ID, where ASCII capital letters match small ones.",
	}, (*Service).listClients)
	ClientShow = define(Spec{
		Name: "client show", Method: "GET", Path: "/clients/{id}", Roles: reading, Summary: "Show a client",
		Details: "Shows a client, the configured rules for clients of its kind, and its metadata document as this\n" +
			"server last read it. Each replica reads the document itself, and so does the command without a\n" +
			"server.",
	}, (*Service).showClient)
	ClientRotateSecret = define(Spec{
		Name: "client rotate-secret", Method: "POST", Path: "/clients/{id}/rotate-secret", Fresh: true, Secret: true,
		Takes:   true,
		Summary: "Give a client a new secret, which is shown once",
		Details: "Replaces the secret of a client that the operator added. The old secret stops working within\n" +
			"seconds; the grants stay.",
	}, (*Service).rotateSecret)
	ClientDelete = define(Spec{
		Name: "client delete", Method: "DELETE", Path: "/clients/{id}", Fresh: true,
		Takes:   true,
		Summary: "Delete a client and revoke all of its grants",
		Details: "Deletes a client, by id or name, and revokes its grants. The id can never be used again, even if the\n" +
			"client registered itself and was never stored. Access ends at once. With very many grants, a running\n" +
			"server or grant finish updates the status lists within minutes.",
	}, (*Service).deleteClient)
)

func (s *Service) addClient(ctx context.Context, in NewClient) (Client, error) {
	client, secret, err := s.mint(in)
	if err != nil {
		return Client{}, err
	}
	warnings, err := s.checkReach(ctx, client)
	if err != nil {
		return Client{}, err
	}
	var h holders
	if h.MadeBy, err = s.here(ctx, true); err != nil {
		return Client{}, err
	}
	if h.SecretAt = client.CreatedAt; secret != "" {
		if h.SecretBy, err = s.here(ctx, false); err != nil {
			return Client{}, err
		}
	}
	if err := hold(&client, h); err != nil {
		return Client{}, err
	}
	err = s.Store.PutClient(ctx, client)
	if errors.Is(err, storage.ErrExists) {
		return Client{}, fault(ErrConflict, "the client id %q is taken; choose another one", client.ID)
	}
	if err != nil {
		return Client{}, err
	}
	s.Audit.Record(ctx, audit.ClientRegistered, audit.Client(client))
	v := clientOf(client)
	v.Secret, v.Warnings = secret, warnings
	return v, nil
}

// mint builds the client and its secret.
func (s *Service) mint(in NewClient) (storage.Client, string, error) {
	if in.ID+in.Name+in.JWKSURI == "" && in.JWKS == nil &&
		len(in.RedirectURIs)+len(in.GrantTypes)+len(in.Resources)+len(in.Scopes) == 0 {
		return storage.Client{}, "", fault(ErrInvalid,
			"say what the client is: redirect URIs for people who sign in, or the grant client_credentials, and a name")
	}
	spec := dcr.Spec{
		ID: in.ID, Name: in.Name, RedirectURIs: in.RedirectURIs, GrantTypes: in.GrantTypes, AuthMethod: in.AuthMethod,
		JWKSURI: in.JWKSURI, Scopes: in.Scopes, Resources: in.Resources, RequirePAR: in.RequirePAR, DPoP: in.DPoP,
		Redirects: s.Config.RedirectPolicy(), Now: s.Now(),
	}
	if in.JWKS != nil {
		keys, err := json.Marshal(in.JWKS)
		if err != nil {
			return storage.Client{}, "", fault(ErrInvalid, "jwks: %v", err)
		}
		spec.JWKS = keys
	}
	client, secret, err := dcr.Mint(spec)
	if err != nil {
		return client, "", fault(ErrInvalid, "%v", err)
	}
	if client.Scopes.Has(oauth.OpenID) && (!client.SignsIn() || len(client.RedirectURIs) == 0) {
		return client, "", fault(ErrInvalid, "with the scope openid people sign in for the client, which has credentials: "+
			"give it a redirect URI, and the authentication client_secret_basic or keys")
	}
	return client, secret, nil
}

// checkReach refuses scopes that none of the client's MCP servers offers. It returns a warning for
// each MCP server that is not known here, because it may be added later.
func (s *Service) checkReach(ctx context.Context, c storage.Client) (warnings []string, err error) {
	catalog, known, err := s.catalogue(ctx)
	if err != nil {
		return nil, err
	}
	unknown, offered := catalog.Unknown(c.Resources), catalog.Offered(c.Resources)
	for _, u := range unknown {
		warnings = append(warnings,
			fmt.Sprintf("%s is not known here, and gets no tokens until: mcp-authd resource add %s", u, u))
	}
	for _, scope := range c.Scopes.Without(policy.OwnScopes) {
		switch {
		case offered.Has(scope):
		case len(unknown) == 0 && known > 0:
			return nil, fault(ErrInvalid,
				"no MCP server that this client may name has the scope %q; see: mcp-authd resource list", scope)
		default:
			warnings = append(warnings, fmt.Sprintf("the scope %q is not known here", scope))
		}
	}
	return warnings, nil
}

// listClients lists configured clients before stored ones. The page token is an index for the
// configured clients, and an ID for the stored ones.
func (s *Service) listClients(ctx context.Context, in Searched) (Page[Client], error) {
	configured, err := s.Clients()
	if err != nil {
		return Page[Client]{}, err
	}
	kind, at, _ := strings.Cut(in.After, ":")
	first, unread := strconv.Atoi(at)
	switch {
	case kind == "stored":
		configured = nil
	case in.After == "":
		at = ""
	case kind != "configured" || unread != nil || first < 0 || first > len(configured):
		return Page[Client]{}, fault(ErrInvalid, "after is not the next of a page")
	default:
		configured, at = configured[first:], ""
	}
	limit := in.bounded()
	var all []storage.Client
	keys := map[string]string{}
	for i, c := range configured {
		if len(all) <= limit && in.fits(c) {
			all, keys[c.ID] = append(all, c), "configured:"+strconv.Itoa(first+i+1)
		}
	}
	next := ""
	if len(all) <= limit {
		q, err := in.search(at)
		if err != nil {
			return Page[Client]{}, err
		}
		stored, behind, err := s.Store.SearchClients(ctx, q)
		if err != nil {
			return Page[Client]{}, err
		}
		if len(stored) == q.Limit {
			behind = stored[limit].ID
		}
		if behind != "" {
			next = "stored:" + behind
		}
		for _, c := range stored {
			if !ofConfig(c) { // listed above
				all, keys[c.ID] = append(all, c), "stored:"+c.ID
			}
		}
	}
	names := s.Names()
	p := page(all, limit, func(c storage.Client) Client {
		v, failed := s.viewClient(ctx, c, names)
		err = errors.Join(err, failed)
		return v
	}, func(c storage.Client) string { return keys[c.ID] })
	p.Next = cmp.Or(p.Next, next)
	return p, err
}

// fits reports whether a client matches the search text, in the way that the store matches it.
func (in Searched) fits(c storage.Client) bool {
	text := storage.Fold(in.Match)
	return strings.Contains(storage.Fold(c.Name), text) || strings.Contains(storage.Fold(c.ID), text)
}

// viewClient is clientOf plus the owner of a user's API key, as long as the key is valid.
func (s *Service) viewClient(ctx context.Context, c storage.Client, names *Names) (Client, error) {
	v := clientOf(c)
	if c.Source != storage.SourcePerson {
		return v, nil
	}
	v.GrantTypes = []string{oauth.GrantClientCredentials} // implied by its source
	grants, err := s.Store.ListGrants(ctx, "", c.ID, "", 1)
	if len(grants) > 0 {
		v.User, v.UserName = grants[0].UserID, names.User(ctx, grants[0].UserID)
	}
	return v, err
}

// HasOwnSecret returns an error if the client's secret is not managed here.
func (c Client) HasOwnSecret() error {
	switch {
	case c.Source == string(storage.SourceConfig):
		return fault(ErrConflict, "the client %q is in the configuration: change its secret there", c.ID)
	case c.Source == string(storage.SourcePerson):
		return fault(ErrConflict, "the client %q is a key that a person made for a program: its person makes another one on the "+
			"account page, and you end this one with: mcp-authd client delete %s", c.ID, c.ID)
	case c.Source != string(storage.SourceStatic) || !strings.HasPrefix(c.AuthMethod, "client_secret_"):
		return fault(ErrConflict, "the client %q has no secret of the operator's (it is %s, with the method %s)",
			c.ID, c.Source, c.AuthMethod)
	}
	return nil
}

func (s *Service) rotateSecret(ctx context.Context, in ClientID) (Client, error) {
	client, err := s.FindClient(ctx, in.ID)
	if err != nil {
		return Client{}, err
	}
	v := clientOf(client)
	if err := v.HasOwnSecret(); err != nil {
		return Client{}, err
	}
	v.Secret = secrets.Token("")
	hash := storage.Hash(secrets.Hash(v.Secret))
	client.SecretHash = &hash
	h, _ := holdersOf(client) // For a client of an earlier version: its creator does not have the new secret.
	if h.SecretBy, err = s.here(ctx, false); err != nil {
		return Client{}, err
	}
	if h.SecretAt = s.Now().UTC(); hold(&client, h) != nil {
		return Client{}, fmt.Errorf("the metadata of the client %q is no JSON", client.ID)
	}
	err = s.Store.ReplaceClient(ctx, client, s.Now())
	if errors.Is(err, storage.ErrRevoked) {
		return Client{}, fault(ErrNotFound, "the client %q was deleted", client.ID)
	}
	if err != nil {
		return Client{}, err
	}
	s.Audit.Record(ctx, audit.ClientChanged, audit.Client(client), slog.String("what", "secret"))
	return v, nil
}

func (s *Service) deleteClient(ctx context.Context, in ClientID) (ClientEnded, error) {
	c, err := s.NamedClient(ctx, in.ID)
	if err != nil {
		return ClientEnded{}, s.Unfinished(ctx, err, func(k storage.Cut) bool { return k.ClientID != "" })
	}
	some, err := s.SomeGrants(ctx, storage.Selection{ClientID: c.ID})
	if err != nil {
		return ClientEnded{}, err
	}
	if err := s.Store.DeleteClient(ctx, c.ID, s.Now()); err != nil {
		return ClientEnded{}, err
	}
	s.Audit.Record(ctx, audit.ClientDeleted, audit.Client(c))
	return ClientEnded{c.ID, c.Name, some.Count()}, nil
}
