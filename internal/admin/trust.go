package admin

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/trust"
)

// TrustEntry is a trusted issuer with its rules.
type TrustEntry struct {
	ID     string            `json:"id"`
	Kind   storage.TrustKind `json:"kind"`
	Issuer string            `json:"issuer"`
	storage.TrustRules
	MaxTTL     string     `json:"max_ttl,omitempty"`
	From       string     `json:"from" jsonschema:"configuration or store"`
	CreatedAt  *time.Time `json:"created_at,omitempty"`
	DisabledAt *time.Time `json:"disabled_at,omitempty"`
	Problem    string     `json:"problem,omitempty" jsonschema:"why it is not used"`
	// Links lists the linked users of its issuer. Only trust show fills it in.
	Links []TrustLink `json:"links,omitempty" jsonschema:"the people of its issuer, of trust show"`
}

// TrustLink links a user of an issuer to an account.
type TrustLink struct {
	Issuer    string                `json:"issuer"`
	Tenant    string                `json:"tenant,omitempty"`
	Kind      storage.TrustNameKind `json:"kind"`
	Subject   string                `json:"subject"`
	User      string                `json:"user" jsonschema:"the id of the account"`
	UserName  string                `json:"user_name,omitempty"`
	By        storage.LinkBy        `json:"by"`
	CreatedAt time.Time             `json:"created_at"`
}

// TrustID names a trust entry.
type TrustID struct {
	ID string `json:"id" jsonschema:"the id of the trust entry"`
}

// Operations on trusted issuers.
var (
	TrustList = define(Spec{
		Name: "trust list", Method: "GET", Path: "/trust", Roles: reading, Summary: "List trusted issuers",
		Details: "Lists the trusted issuers (trust entries) in the order of use, configured ones first.",
	}, (*Service).listTrust)
	TrustShow = define(Spec{
		Name: "trust show", Method: "GET", Path: "/trust/{id}", Roles: reading,
		Summary: "Show a trusted issuer with the settings of its preset",
		Details: "Shows a trust entry with the settings of its preset, and the users of its issuer: their accounts\n" +
			"here, and how each was matched.",
	}, (*Service).showTrust)
	TrustDisable = define(Spec{
		Name: "trust disable", Method: "POST", Path: "/trust/{id}/disable", Fresh: true,
		Takes:   true,
		Summary: "Stop accepting assertions of an issuer until it is enabled",
		Details: "Stops accepting assertions by a trust entry, of the store or of the configuration, and revokes the\n" +
			"grants that were issued from them.",
	}, (*Service).disableTrust)
	TrustEnable = define(Spec{
		Name: "trust enable", Method: "POST", Path: "/trust/{id}/enable", Fresh: true,
		Summary: "Accept assertions of a disabled issuer again",
		Details: "Accepts the assertions of a disabled trust entry again. Revoked grants stay revoked.",
	}, (*Service).enableTrust)
	TrustRemove = define(Spec{
		Name: "trust remove", Method: "DELETE", Path: "/trust/{id}", Fresh: true,
		Takes:   true,
		Summary: "Remove a trusted issuer from the store",
		Details: "Removes a trust entry and revokes the grants that were issued from its assertions.",
	}, (*Service).removeTrust)
)

// TrustOf returns the view of an entry, including the values that its preset sets.
func TrustOf(e storage.TrustEntry) TrustEntry {
	full, err := trust.Check(e)
	v := TrustEntry{
		ID: full.ID, Kind: full.Kind, Issuer: full.Issuer, TrustRules: full.TrustRules, From: "store",
	}
	if err != nil {
		v.Problem = err.Error()
	}
	if full.MaxTTL > 0 {
		v.MaxTTL = full.MaxTTL.String()
	}
	if e.Config {
		v.From = "configuration"
	}
	if !e.CreatedAt.IsZero() {
		v.CreatedAt = &e.CreatedAt
	}
	if !e.DisabledAt.IsZero() {
		v.DisabledAt = &e.DisabledAt
	}
	return v
}

// TrustEntries returns the entries of the configuration and of the store, in the order in which
// they are tried.
func (s *Service) TrustEntries(ctx context.Context) (out []storage.TrustEntry, err error) {
	stored, err := s.Store.ListTrust(ctx)
	if err != nil {
		return nil, err
	}
	out = s.Config.TrustEntries()
	for _, e := range stored {
		if !e.Mark() {
			out = append(out, e)
			continue
		}
		for i := range out {
			if out[i].Config && out[i].ID == e.ID {
				out[i].DisabledAt = e.DisabledAt
			}
		}
	}
	return out, nil
}

// FindTrust finds a trust entry.
func (s *Service) FindTrust(ctx context.Context, id string) (storage.TrustEntry, error) {
	all, err := s.TrustEntries(ctx)
	if err != nil {
		return storage.TrustEntry{}, err
	}
	for _, e := range all {
		if e.ID == id {
			return e, nil
		}
	}
	return storage.TrustEntry{}, fault(ErrNotFound, "there is no trust entry %q; see: mcp-authd trust list", id)
}

func (s *Service) listTrust(ctx context.Context, _ None) (Page[TrustEntry], error) {
	all, err := s.TrustEntries(ctx)
	out := make([]TrustEntry, 0, len(all))
	for _, e := range all {
		out = append(out, TrustOf(e))
	}
	return Page[TrustEntry]{Items: out}, err
}

func (s *Service) showTrust(ctx context.Context, in TrustID) (TrustEntry, error) {
	e, err := s.FindTrust(ctx, in.ID)
	if err != nil {
		return TrustEntry{}, err
	}
	v := TrustOf(e)
	if v.Kind != storage.TrustEnterprise {
		return v, nil
	}
	links, err := s.TrustLinks(ctx, storage.TrustEntry{ID: v.ID, Issuer: v.Issuer, TrustRules: v.TrustRules}, "")
	names := s.Names()
	for _, l := range links {
		v.Links = append(v.Links, trustLinkOf(l, names.User(ctx, l.UserID)))
	}
	return v, err
}

func (s *Service) disableTrust(ctx context.Context, in TrustID) (TrustEntry, error) {
	return s.changeTrust(ctx, in.ID, "disabled", func(e storage.TrustEntry) error {
		return s.Store.DisableTrust(ctx, e.ID, s.Now())
	})
}

func (s *Service) enableTrust(ctx context.Context, in TrustID) (TrustEntry, error) {
	return s.changeTrust(ctx, in.ID, "enabled", func(e storage.TrustEntry) error {
		return s.Store.EnableTrust(ctx, e.ID)
	})
}

// changeTrust applies do to an entry, and returns the changed entry.
func (s *Service) changeTrust(
	ctx context.Context, id, done string, do func(storage.TrustEntry) error,
) (TrustEntry, error) {
	e, err := s.FindTrust(ctx, id)
	if err != nil {
		return TrustEntry{}, err
	}
	// a configured entry that is not disabled has no row
	if err := do(e); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return TrustEntry{}, err
	}
	s.Audit.Record(ctx, audit.TrustChanged, slog.String("trust", e.ID), slog.String("what", done))
	e, err = s.FindTrust(ctx, e.ID)
	return TrustOf(e), err
}

// removeTrust removes an entry, and returns it as it was.
func (s *Service) removeTrust(ctx context.Context, in TrustID) (TrustEntry, error) {
	e, err := s.FindTrust(ctx, in.ID)
	switch {
	case err != nil:
		return TrustEntry{}, err
	case e.Config:
		return TrustEntry{}, fault(ErrConflict, "%s is in the configuration (%s): remove it there, or disable it here",
			e.ID, s.configSource())
	}
	if err := s.Store.RemoveTrust(ctx, e.ID, s.Now()); err != nil {
		return TrustEntry{}, err
	}
	s.Audit.Record(ctx, audit.TrustChanged, slog.String("trust", e.ID), slog.String("what", "removed"))
	return TrustOf(e), nil
}

// configSource names the configuration file.
func (s *Service) configSource() string {
	if s.Config.File == "" {
		return "no file, defaults and environment"
	}
	return s.Config.File
}

// TrustLinks returns up to a thousand linked users of an entry: first those of its issuer, then
// those of its SAML issuers. userID limits them to one account; "" selects all.
func (s *Service) TrustLinks(
	ctx context.Context, e storage.TrustEntry, userID string,
) (out []storage.TrustLink, err error) {
	for _, issuer := range append([]string{e.Issuer}, e.SAMLIssuers...) {
		found, err := s.trustLinksOf(ctx, userID, issuer, linkedNames-len(out))
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// trustLinksOf reads up to limit links of an issuer ("" for any) and of an account ("" for any).
func (s *Service) trustLinksOf(
	ctx context.Context, userID, issuer string, limit int,
) (out []storage.TrustLink, err error) {
	var after storage.TrustName
	for len(out) < limit {
		page, err := s.Store.ListTrustLinks(ctx, userID, issuer, after, min(limit-len(out), 100))
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		out, after = append(out, page...), page[len(page)-1].TrustName
	}
	return out, nil
}
