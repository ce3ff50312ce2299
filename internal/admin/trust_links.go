package admin

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/trust"
)

// PersonOfIssuer links a user of an issuer to an account.
type PersonOfIssuer struct {
	ID         string `json:"id" jsonschema:"the id of a trust entry of the issuer"`
	User       string `json:"user" jsonschema:"the account (name or id)"`
	Subject    string `json:"subject,omitempty" jsonschema:"the issuer's name for the user (sub)"`
	Tenant     string `json:"tenant,omitempty" jsonschema:"tenant at the issuer, as in the claim tenant"`
	SAMLIssuer string `json:"saml_issuer,omitempty" jsonschema:"the subject is a name identifier of this SAML issuer of the entry"`
}

// Operations on users of trusted issuers.
var (
	TrustLinkTo = define(Spec{
		Name: "trust link", Method: "POST", Path: "/trust/{id}/links", Fresh: true,
		Summary: "Link an issuer's user to an account",
		Details: "Links the issuer's name for a user (sub) to an account. The issuer's assertions about that user then\n" +
			"always belong to that account, before any other rule for finding the account. Without a subject, the\n" +
			"issuer may name the user by the account name here (aud_sub). The link belongs to the issuer, so it\n" +
			"applies to every entry with that issuer, of the store or of the configuration, and stays when the\n" +
			"entry is removed.",
	}, (*Service).linkTrust)
	TrustUnlink = define(Spec{
		Name: "trust unlink", Method: "POST", Path: "/trust/{id}/unlink", Fresh: true,
		Takes:   true,
		Summary: "Unlink an issuer's user from an account",
		Details: "Removes the link between the issuer's name for a user and an account; without a subject, all of its\n" +
			"links. It also revokes every grant of the account that was issued from an assertion, of any issuer:\n" +
			"programs have to ask again. Grants that the user approved, sessions and consents stay. The entry\n" +
			"does not create the user again, but with email_domains the issuer can match the account again.",
	}, (*Service).unlinkTrust)
)

// peopleEntry returns an entry whose issuer identifies users, including the values that its preset
// sets.
func (s *Service) peopleEntry(ctx context.Context, id string) (storage.TrustEntry, error) {
	e, err := s.FindTrust(ctx, id)
	if err != nil {
		return e, err
	}
	full, err := trust.Check(e)
	switch {
	case err != nil:
		return e, fault(ErrConflict, "%s is not used: %v", e.ID, err)
	case full.Kind != storage.TrustEnterprise:
		return e, fault(ErrConflict, "%s is about programs: only an enterprise entry can have users", e.ID)
	}
	return full, nil
}

// name returns the issuer's name for the user: the subject, or the account here if there is no
// subject.
func (p PersonOfIssuer) name(e storage.TrustEntry, userID string) (storage.TrustName, error) {
	n := storage.TrustName{Issuer: e.Issuer, Tenant: p.Tenant, Kind: storage.TrustAccount, Subject: userID}
	if p.Subject != "" {
		n.Kind, n.Subject = storage.TrustSubject, p.Subject
	}
	switch {
	case len(n.Subject) > trust.MaxText || len(n.Tenant) > trust.MaxText:
		return n, fault(ErrInvalid, "the subject or the tenant is longer than %d bytes", trust.MaxText)
	case p.SAMLIssuer == "":
		return n, nil
	case n.Kind == storage.TrustAccount || p.Tenant != "":
		return n, fault(ErrInvalid, "a SAML issuer needs a subject, and goes without a tenant")
	case !slices.Contains(e.SAMLIssuers, p.SAMLIssuer):
		return n, fault(ErrInvalid, "%s may not name people of %q: see saml_issuers", e.ID, p.SAMLIssuer)
	}
	return storage.TrustName{Issuer: p.SAMLIssuer, Kind: storage.TrustSAML, Subject: n.Subject}, nil
}

func (s *Service) linkTrust(ctx context.Context, in PersonOfIssuer) (TrustLink, error) {
	e, err := s.peopleEntry(ctx, in.ID)
	if err != nil {
		return TrustLink{}, err
	}
	u, err := s.FindUser(ctx, in.User)
	if err != nil {
		return TrustLink{}, err
	}
	n, err := in.name(e, u.ID)
	if err != nil {
		return TrustLink{}, err
	}
	l := storage.TrustLink{TrustName: n, UserID: u.ID, By: storage.LinkedByOperator, CreatedAt: s.Now()}
	err = s.Store.LinkTrust(ctx, l)
	if errors.Is(err, storage.ErrExists) {
		return TrustLink{}, fault(ErrConflict,
			"%s is linked to another account, see: mcp-authd trust show %s; nothing was changed", n.Subject, e.ID)
	}
	if err != nil {
		return TrustLink{}, err
	}
	s.Audit.Record(ctx, audit.TrustLinked, audit.Person(u.ID, u.Name), slog.String("trust", e.ID))
	return trustLinkOf(l, u.Name), nil
}

func trustLinkOf(l storage.TrustLink, name string) TrustLink {
	return TrustLink{
		Issuer: l.Issuer, Tenant: l.Tenant, Kind: l.Kind, Subject: l.Subject, User: l.UserID, By: l.By, UserName: name,
		CreatedAt: l.CreatedAt,
	}
}

// unlinkTrust removes links, and returns them.
func (s *Service) unlinkTrust(ctx context.Context, in PersonOfIssuer) (Page[TrustLink], error) {
	e, err := s.peopleEntry(ctx, in.ID)
	if err != nil {
		return Page[TrustLink]{}, err
	}
	u, err := s.FindUser(ctx, in.User)
	if err != nil {
		return Page[TrustLink]{}, err
	}
	all, err := s.TrustLinks(ctx, e, u.ID)
	if err != nil {
		return Page[TrustLink]{}, err
	}
	out := Page[TrustLink]{Items: []TrustLink{}}
	for _, l := range all {
		if in.Subject != "" && l.Subject != in.Subject || in.Tenant != "" && l.Tenant != in.Tenant ||
			in.SAMLIssuer != "" && (l.Kind != storage.TrustSAML || l.Issuer != in.SAMLIssuer) {
			continue
		}
		if _, err := s.Store.UnlinkTrust(ctx, l.TrustName, s.Now()); err != nil {
			return out, err
		}
		s.Audit.Record(ctx, audit.TrustUnlinked, audit.Person(u.ID, u.Name), slog.String("trust", e.ID))
		out.Items = append(out.Items, trustLinkOf(l, u.Name))
	}
	if len(out.Items) == 0 {
		return out, fault(ErrNotFound, "%s has no such link to %s, see: mcp-authd user identities %s; nothing was changed",
			u.Name, e.ID, u.Name)
	}
	return out, nil
}
