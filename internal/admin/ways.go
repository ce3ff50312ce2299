package admin

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Way is an authentication method of an account: a passkey, an authenticator app, the password, the
// remaining recovery codes, or an account at a provider.
type Way struct {
	ID         string    `json:"id,omitempty" jsonschema:"id of a passkey or an app"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name,omitempty"`
	RPID       string    `json:"rp_id,omitempty"`
	Works      bool      `json:"works" jsonschema:"it works at the issuer's host"`
	Left       int       `json:"left,omitempty" jsonschema:"remaining recovery codes"`
	CreatedAt  time.Time `json:"created_at,omitzero"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
}

// UserWay names an authentication method of an account.
type UserWay struct {
	Name  string `json:"name" jsonschema:"the name of the account"`
	Way   string `json:"way" jsonschema:"the id of the passkey or app"`
	Force bool   `json:"force,omitempty" jsonschema:"even if the user then has no authentication method"`
}

// Identity is an account at a provider or a trusted issuer.
type Identity struct {
	Connector  string    `json:"connector" jsonschema:"the provider; empty for an issuer"`
	Subject    string    `json:"subject"`
	Label      string    `json:"label,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
	Began      bool      `json:"began" jsonschema:"the account was created from it"`

	Issuer string `json:"issuer,omitempty" jsonschema:"this and the following members: only for issuers"`
	Tenant string `json:"tenant,omitempty"`
	Kind   string `json:"kind,omitempty"`
	By     string `json:"by,omitempty"`
}

// Session is a browser session of a user.
type Session struct {
	ID        string    `json:"id"`
	Browser   string    `json:"browser,omitempty"`
	Network   string    `json:"network,omitempty" jsonschema:"network of the first request"`
	Methods   []string  `json:"methods,omitempty" jsonschema:"how the user authenticated"`
	CreatedAt time.Time `json:"created_at"`
	ProvedAt  time.Time `json:"proved_at"`
	SeenAt    time.Time `json:"seen_at,omitzero" jsonschema:"the last use, to the hour"`
	ExpiresAt time.Time `json:"expires_at"`
}

// UserSession names a session of an account.
type UserSession struct {
	Name    string `json:"name" jsonschema:"the name of the account"`
	Session string `json:"session" jsonschema:"the id of the session"`
}

// Operations on authentication methods, identities and sessions.
var (
	UserWays = define(Spec{
		Name: "user ways", Method: "GET", Path: "/users/{name}/ways", Roles: readers,
		Summary: "List the authentication methods of an account",
	}, (*Service).listWays)
	UserWaysRemove = define(Spec{
		Name: "user ways remove", Method: "DELETE", Path: "/users/{name}/ways/{way}", Roles: helping, Fresh: true,
		Takes:   true,
		Summary: "Remove a passkey or authenticator app from an account",
		Details: "Removes a passkey or an authenticator app, for example on a lost phone. The last authentication\n" +
			"method is removed only by force: the user then needs another one from you, such as a password.",
	}, (*Service).removeWay)
	UserIdentities = define(Spec{
		Name: "user identities", Method: "GET", Path: "/users/{name}/identities", Roles: readers,
		Summary: "List the provider accounts that are linked to an account",
		Details: "Lists the provider accounts that the user signs in with, and then the subjects of trusted issuers\n" +
			"that are linked to the account without a sign-in (trust link).",
	}, (*Service).listIdentities)
	UserSessions = define(Spec{
		Name: "user sessions", Method: "GET", Path: "/users/{name}/sessions", Roles: readers,
		Summary: "List the browser sessions of a user",
	}, (*Service).listSessions)
	UserSessionsEnd = define(Spec{
		Name: "user sessions end", Method: "DELETE", Path: "/users/{name}/sessions/{session}", Roles: helping,
		Takes:   true,
		Summary: "End a browser session of a user",
		Details: "Ends one browser session. Grants of applications stay: to end them, see grant revoke.",
	}, (*Service).endSession)
)

func (s *Service) listWays(ctx context.Context, in UserName) (Page[Way], error) {
	u, err := s.FindUser(ctx, in.Name)
	if err != nil {
		return Page[Way]{}, err
	}
	all, err := s.waysOf(ctx, u)
	return Page[Way]{Items: all}, err
}

func (s *Service) waysOf(ctx context.Context, u storage.User) ([]Way, error) {
	w, err := s.Ways()
	if err != nil {
		return nil, err
	}
	all, err := w.List(ctx, u.ID)
	if err != nil {
		return nil, err
	}
	f, err := w.Factors(ctx, u.ID)
	if err != nil {
		return nil, err
	}
	identities, err := s.Store.Identities(ctx, u.ID)
	if err != nil {
		return nil, err
	}
	out := make([]Way, 0, len(all))
	for _, l := range all {
		out = append(out, Way{
			ID: l.ID, Kind: string(l.Kind), Name: l.Name, RPID: l.RPID, Works: l.Works, CreatedAt: l.CreatedAt,
			LastUsedAt: l.LastUsedAt,
		})
	}
	if u.PasswordHash != "" {
		out = append(out, Way{Kind: "password", Works: s.Config.Login.Local})
	}
	if f.RecoveryCodes > 0 {
		out = append(out, Way{Kind: "recovery", Works: true, Left: f.RecoveryCodes})
	}
	for _, i := range identities {
		is := func(c config.Connector) bool { return c.ID == i.Connector }
		out = append(out, Way{
			Kind: "provider", Name: i.Connector + ": " + i.Label, Works: slices.ContainsFunc(s.Config.ThirdParty, is),
			CreatedAt: i.CreatedAt, LastUsedAt: i.LastUsedAt,
		})
	}
	return out, nil
}

// removeWay removes an authentication method, notifies the user, and returns the removed method.
func (s *Service) removeWay(ctx context.Context, in UserWay) (removed Way, err error) {
	u, err := s.FindUser(ctx, in.Name)
	if err != nil {
		return removed, err
	}
	all, err := s.waysOf(ctx, u)
	if err != nil {
		return removed, err
	}
	if i := slices.IndexFunc(all, func(w Way) bool { return w.ID == in.Way }); i >= 0 && in.Way != "" {
		removed = all[i]
	}
	w, err := s.Ways()
	if err != nil {
		return removed, err
	}
	remove := w.Remove
	if in.Force {
		remove = s.Store.TakeWay
	}
	switch err := remove(ctx, u.ID, in.Way); {
	case errors.Is(err, storage.ErrNotFound):
		return removed, fault(ErrNotFound, "%s has no way in %q; see: mcp-authd user ways %s", u.Name, in.Way, u.Name)
	case errors.Is(err, storage.ErrLast):
		return removed, fault(ErrConflict,
			"nothing else lets %[1]s in: set a password first (mcp-authd user passwd %[1]s), or remove it by force "+
				"and then make a link: mcp-authd user recover %[1]s", u.Name)
	case err != nil:
		return removed, err
	}
	s.Notifier.Tell(ctx, u.ID, notice.Change{Kind: notice.WayRemoved, Detail: removed.Name})
	return removed, nil
}

// linkedNames limits how many names of a user at issuers are shown.
const linkedNames = 1000

func (s *Service) listIdentities(ctx context.Context, in UserName) (Page[Identity], error) {
	u, err := s.FindUser(ctx, in.Name)
	if err != nil {
		return Page[Identity]{}, err
	}
	all, err := s.Store.Identities(ctx, u.ID)
	if err != nil {
		return Page[Identity]{}, err
	}
	links, err := s.trustLinksOf(ctx, u.ID, "", linkedNames)
	if err != nil {
		return Page[Identity]{}, err
	}
	out := make([]Identity, 0, len(all)+len(links))
	for _, i := range all {
		out = append(out, Identity{
			Connector: i.Connector, Subject: i.Subject, Label: i.Label, CreatedAt: i.CreatedAt,
			LastUsedAt: i.LastUsedAt, Began: i.Began,
		})
	}
	for _, l := range links {
		out = append(out, Identity{
			Subject: l.Subject, CreatedAt: l.CreatedAt, Began: l.By == storage.LinkedByCreation, Issuer: l.Issuer,
			Tenant: l.Tenant, Kind: string(l.Kind), By: string(l.By),
		})
	}
	return Page[Identity]{Items: out}, nil
}

func (s *Service) listSessions(ctx context.Context, in UserName) (Page[Session], error) {
	u, err := s.FindUser(ctx, in.Name)
	if err != nil {
		return Page[Session]{}, err
	}
	all, err := s.sessionsOf(ctx, u)
	return Page[Session]{Items: all}, err
}

func (s *Service) sessionsOf(ctx context.Context, u storage.User) ([]Session, error) {
	all, err := s.Store.Sessions(ctx, u.ID, s.Now(), MaxPage)
	out := make([]Session, 0, len(all))
	for _, b := range all {
		out = append(out, Session{
			ID: b.ID(), Browser: b.Agent, Network: b.Address, Methods: b.Methods, CreatedAt: b.CreatedAt.UTC(),
			ProvedAt: b.Proved().UTC(), SeenAt: b.SeenAt.UTC(), ExpiresAt: b.ExpiresAt.UTC(),
		})
	}
	return out, err
}

func (s *Service) endSession(ctx context.Context, in UserSession) (ended Session, err error) {
	u, err := s.FindUser(ctx, in.Name)
	if err != nil {
		return ended, err
	}
	all, err := s.sessionsOf(ctx, u)
	if err != nil {
		return ended, err
	}
	if i := slices.IndexFunc(all, func(v Session) bool { return v.ID == in.Session }); i >= 0 {
		ended = all[i]
	}
	err = s.Store.EndSignIn(ctx, in.Session, storage.SessionEnding{UserID: u.ID, Now: s.Now()})
	if errors.Is(err, storage.ErrNotFound) {
		return ended, fault(ErrNotFound, "%s has no session %q; see: mcp-authd user sessions %s", u.Name, in.Session, u.Name)
	}
	if err == nil {
		s.Audit.Record(ctx, audit.LoggedOut, audit.Person(u.ID, u.Name), slog.String("session", in.Session))
	}
	return ended, err
}
