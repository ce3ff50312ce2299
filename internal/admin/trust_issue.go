package admin

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Audience is an authorization server that accepts assertions about users from this server.
type Audience struct {
	Issuer    string                   `json:"audience"`
	Resources []string                 `json:"resources"`
	Scopes    []string                 `json:"scopes"`
	Clients   []storage.AudienceClient `json:"clients"`
	Mail      bool                     `json:"mail"`
	MaxAge    storage.Age              `json:"max_age,omitempty"`
	CreatedAt time.Time                `json:"created_at"`
}

// NewAudience describes an audience to add.
type NewAudience struct {
	Issuer    string                   `json:"audience" jsonschema:"issuer of the authorization server"`
	Resources []string                 `json:"resources" jsonschema:"MCP servers there that clients may request"`
	Scopes    []string                 `json:"scopes" jsonschema:"scopes there that clients may request"`
	Clients   []storage.AudienceClient `json:"clients" jsonschema:"clients that may get assertions, with their ids there"`
	Mail      bool                     `json:"mail,omitempty" jsonschema:"include the mail address of the user"`
	MaxAge    storage.Age              `json:"max_age,omitzero" jsonschema:"maximum age of the sign-in, such as 12h"`
}

// AudienceIssuer names an audience.
type AudienceIssuer struct {
	Issuer string `json:"audience" jsonschema:"the issuer of the authorization server"`
}

// Operations on audiences.
var (
	TrustIssueAdd = define(Spec{
		Name: "trust issue add", Method: "POST", Path: "/audiences", Fresh: true,
		Summary: "Add an authorization server that clients can get assertions for",
		Details: "Lets clients exchange the sign-ins of users here for identity assertions (ID-JAG). The authorization\n" +
			"server accepts them if it trusts this one. Such a client needs the scope openid and credentials.",
	}, (*Service).addAudience)
	TrustIssueList = define(Spec{
		Name: "trust issue list", Method: "GET", Path: "/audiences", Roles: reading,
		Summary: "List the authorization servers that clients can get assertions for",
	}, (*Service).listAudiences)
	TrustIssueRemove = define(Spec{
		Name: "trust issue remove", Method: "DELETE", Path: "/audiences/{audience}", Fresh: true,
		Takes:   true,
		Summary: "Stop issuing assertions for an authorization server",
		Details: "Stops issuing assertions for an authorization server. Assertions that were issued expire within five\n" +
			"minutes. Revoke the grants that were issued from them at that authorization server.",
	}, (*Service).removeAudience)
)

func audienceOf(a storage.Audience) Audience {
	return Audience{
		Issuer:    a.Issuer,
		Resources: a.Resources,
		Scopes:    a.Scopes,
		Clients:   a.Clients,
		Mail:      a.Mail,
		MaxAge:    a.MaxAge,
		CreatedAt: a.CreatedAt,
	}
}

func (s *Service) listAudiences(ctx context.Context, _ None) (Page[Audience], error) {
	all, err := s.Store.ListAudiences(ctx)
	out := make([]Audience, 0, len(all))
	for _, a := range all {
		out = append(out, audienceOf(a))
	}
	return Page[Audience]{Items: out}, err
}

// maxAudience limits each list of an audience.
const maxAudience = 1000

// audience validates the input, and returns the audience that it describes.
func (in NewAudience) audience(now time.Time) (a storage.Audience, err error) {
	if err := metadata.ValidateIssuer(strings.TrimSuffix(in.Issuer, "/")); err != nil {
		return a, fault(ErrInvalid, "%q is no issuer: %v", in.Issuer, err)
	}
	a = storage.Audience{
		Issuer: in.Issuer, Scopes: in.Scopes, Clients: in.Clients, Mail: in.Mail, MaxAge: in.MaxAge,
		CreatedAt: now.UTC().Truncate(time.Millisecond),
	}
	switch {
	case len(in.Resources) == 0 || len(in.Scopes) == 0 || len(in.Clients) == 0:
		return a, fault(ErrInvalid, "say what may be asserted to whom: resources, scopes and clients, each one at least")
	case len(in.Resources) > maxAudience || len(in.Scopes) > maxAudience || len(in.Clients) > maxAudience:
		return a, fault(ErrInvalid, "there may be %d resources, scopes and clients at most", maxAudience)
	case in.MaxAge < 0:
		return a, fault(ErrInvalid, "the largest age of a sign-in is not negative")
	}
	for _, raw := range in.Resources {
		uri, err := oauth.CanonicalResource(raw)
		if err != nil {
			return a, fault(ErrInvalid, "the resource %s: %v", raw, err)
		}
		a.Resources = append(a.Resources, uri)
	}
	for _, scope := range in.Scopes {
		if !oauth.ValidScope(scope) {
			return a, fault(ErrInvalid, "%q is not a scope: no spaces, quotes or backslashes", scope)
		}
	}
	for i, c := range in.Clients {
		same := func(other storage.AudienceClient) bool { return other.ID == c.ID }
		switch {
		case c.ID == "" || c.There == "":
			return a, fault(ErrInvalid, "a client must have an id here and one at the audience")
		case slices.ContainsFunc(in.Clients[:i], same):
			return a, fault(ErrInvalid, "the client %s is there twice", c.ID)
		}
	}
	return a, nil
}

func (s *Service) addAudience(ctx context.Context, in NewAudience) (Audience, error) {
	a, err := in.audience(s.Now())
	if err != nil {
		return Audience{}, err
	}
	if err := s.checkAudience(ctx, a); err != nil {
		return Audience{}, err
	}
	err = s.Store.AddAudience(ctx, a)
	if errors.Is(err, storage.ErrExists) {
		return Audience{}, fault(ErrConflict,
			"%s is there already; to change it: mcp-authd trust issue remove %s, and add it again", a.Issuer, a.Issuer)
	}
	if err != nil {
		return Audience{}, err
	}
	s.Audit.Record(ctx, audit.AudienceChanged, slog.String("audience", a.Issuer), slog.String("what", "added"))
	return audienceOf(a), nil
}

// checkAudience refuses this server itself, and clients that users cannot sign in to.
func (s *Service) checkAudience(ctx context.Context, a storage.Audience) error {
	if sameIssuer(a.Issuer, s.Config.Issuer) {
		return fault(ErrInvalid, "%s is this server: what it asserts is for others to redeem", a.Issuer)
	}
	for _, c := range a.Clients {
		client, err := s.ReadClient(ctx, c.ID)
		if err != nil {
			return err
		}
		if !client.SignsIn() {
			return fault(ErrConflict, "people cannot sign in for the client %q: it needs the scope openid and credentials, "+
				"see: mcp-authd client add", c.ID)
		}
	}
	return nil
}

// sameIssuer reports whether two issuers are equal, ignoring a trailing slash.
func sameIssuer(a, b string) bool {
	ua, errA := url.Parse(a)
	ub, errB := url.Parse(b)
	return errA == nil && errB == nil && strings.EqualFold(ua.Host, ub.Host) &&
		strings.TrimSuffix(ua.Path, "/") == strings.TrimSuffix(ub.Path, "/")
}

func (s *Service) removeAudience(ctx context.Context, in AudienceIssuer) (removed Audience, err error) {
	all, err := s.Store.ListAudiences(ctx)
	if err != nil {
		return removed, err
	}
	if i := slices.IndexFunc(all, func(a storage.Audience) bool { return a.Issuer == in.Issuer }); i >= 0 {
		removed = audienceOf(all[i])
	}
	err = s.Store.RemoveAudience(ctx, in.Issuer)
	if errors.Is(err, storage.ErrNotFound) {
		return removed, fault(ErrNotFound, "there is no audience %s; see: mcp-authd trust issue list", in.Issuer)
	}
	if err != nil {
		return removed, err
	}
	s.Audit.Record(ctx, audit.AudienceChanged, slog.String("audience", in.Issuer), slog.String("what", "removed"))
	return removed, nil
}
