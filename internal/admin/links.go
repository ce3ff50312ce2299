package admin

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/identifier"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// Invitation describes an account that its user will create.
type Invitation struct {
	Name string `json:"name" jsonschema:"the name that the account will have"`
	Role string `json:"role,omitempty" jsonschema:"administrator, auditor or support; nothing for none"`
	Mail string `json:"mail,omitempty" jsonschema:"mail address of the user"`
	// Groups can be set only by an administrator, as with group add.
	Groups []string `json:"groups,omitempty" jsonschema:"names of the groups that the account will be in"`
	TTL    string   `json:"ttl,omitempty" jsonschema:"lifetime of the link, such as 7d (default: login.links.invite_ttl)"`
}

// Recovery is the request for a recovery link.
type Recovery struct {
	Name string `json:"name" jsonschema:"the name of the account"`
	Now  bool   `json:"now,omitempty" jsonschema:"refuse if the link would have to wait"`
	TTL  string `json:"ttl,omitempty" jsonschema:"how long the link works (default: login.links.recover_ttl)"`
}

// Link is a created one-time link. Only its recipient may see it.
type Link struct {
	URL       string    `json:"url" secret:"yes" jsonschema:"secret: give it only to the user"`
	NotBefore time.Time `json:"not_before"`
	ExpiresAt time.Time `json:"expires_at"`
	Mail      string    `json:"mail,omitempty" jsonschema:"address that it was sent to"`
	Warning   string    `json:"warning,omitempty" jsonschema:"why it was not sent"`
}

// OpenLinks selects the links of one account, or all.
type OpenLinks struct {
	Paging
	Name string `json:"name,omitempty" jsonschema:"only links of this account"`
}

// OpenLink is a link that can still be used.
type OpenLink struct {
	Kind      string    `json:"kind"`
	Name      string    `json:"name" jsonschema:"name of the account, or of the future account"`
	User      string    `json:"user,omitempty"`
	Admin     bool      `json:"admin,omitempty" jsonschema:"only for an invitation"`
	Role      Role      `json:"role,omitempty" jsonschema:"only for an invitation"`
	Mail      string    `json:"mail,omitempty" jsonschema:"only for an invitation"`
	Groups    []string  `json:"groups,omitempty" jsonschema:"only for an invitation"`
	NotBefore time.Time `json:"not_before"`
	ExpiresAt time.Time `json:"expires_at"`
	CreatedAt time.Time `json:"created_at"`
}

// LinksEnded says how many links of a user were revoked.
type LinksEnded struct {
	Name  string `json:"name"`
	Ended int    `json:"ended" jsonschema:"number of revoked links"`
}

// maxInvitedGroups bounds the groups of one invitation.
const maxInvitedGroups = 20

// Operations on one-time links.
var (
	UserInvite = define(Spec{
		Name: "user invite", Method: "POST", Path: "/users/{name}/invitation",
		Roles: helping, Fresh: true, Secret: true, Early: true,
		Summary: "Create an invitation link for a new account",
		Details: "Creates an invitation link. The recipient chooses a password or creates a passkey, and then has an\n" +
			"account. If you give a mail address and mail.smtp is configured, the link is also sent by mail. It\n" +
			"works once, and a new invitation replaces it.\n" +
			"The account joins the given groups when the invitation is accepted. Only an administrator can set\n" +
			"groups.",
	}, (*Service).invite)
	UserRecover = define(Spec{
		Name: "user recover", Method: "POST", Path: "/users/{name}/recovery",
		Roles: helping, Fresh: true, Secret: true,
		Summary: "Create a recovery link for an account",
		Details: "Creates a recovery link. The recipient chooses a new password, or creates a passkey instead, and\n" +
			"every session and grant of the account ends. If the user has other authentication methods, the link\n" +
			"works only after a delay (login.links.recover_delay, 24 hours). The user is notified and can stop\n" +
			"it. The link works once, and a new one replaces it.",
	}, (*Service).recover)
	UserLinks = define(Spec{
		Name: "user links", Method: "GET", Path: "/links", Roles: readers,
		Summary: "List invitation, recovery and reset links that still work",
		Details: "Lists the open links of a user or of all users: invitations, recovery links and password reset\n" +
			"links. The link itself is not stored, so it cannot be shown again.",
	}, (*Service).openLinks)
	UserLinksWithdraw = define(Spec{
		Name: "user links withdraw", Method: "DELETE", Path: "/users/{name}/links", Roles: helping,
		Takes: true, Early: true,
		Summary: "Revoke every open link of a user",
		Details: "Revokes the invitation for a name, or every open link of an account. The user of the account is\n" +
			"notified.",
	}, (*Service).withdrawLinks)
)

func (s *Service) invite(ctx context.Context, in Invitation) (Link, error) {
	role, err := givenRole(ctx, in.Role)
	if err != nil {
		return Link{}, err
	}
	ttl, err := s.linkTime(in.TTL, users.MaxInviteTTL)
	if err != nil {
		return Link{}, err
	}
	if err := s.checkGroups(ctx, in.Groups); err != nil {
		return Link{}, err
	}
	made, err := s.Users.Invite(ctx, s.Config.Issuer,
		users.Invitation{Name: in.Name, Role: role, Mail: in.Mail, Groups: in.Groups, TTL: ttl})
	l, err := linkOf(made, err, in.Name)
	if in.Mail != "" && s.Config.Mail.SMTP.Address == "" {
		l.Warning = "mail.smtp is not configured, so the link is not sent: hand it over"
	}
	return l, err
}

// checkGroups checks that the groups of an invitation exist. Whether the actor may set them is
// checked in mayTouch.
func (s *Service) checkGroups(ctx context.Context, groups []string) error {
	if len(groups) == 0 {
		return nil
	}
	if len(groups) > maxInvitedGroups {
		return fault(ErrInvalid, "an invitation can have at most %s", label.Count(maxInvitedGroups, "group", "groups"))
	}
	known, err := s.Store.ListGroups(ctx)
	if err != nil {
		return err
	}
	for _, name := range groups {
		if !slices.ContainsFunc(known, func(g storage.Group) bool { return g.Name == name }) {
			return unknownGroup(name)
		}
	}
	return nil
}

func (s *Service) recover(ctx context.Context, in Recovery) (Link, error) {
	ttl, err := s.linkTime(in.TTL, users.MaxRecoverTTL)
	if err != nil {
		return Link{}, err
	}
	u, err := s.FindUser(ctx, in.Name)
	if err != nil {
		return Link{}, err
	}
	made, err := s.Users.Recover(ctx, s.Config.Issuer, u.ID, users.RecoveryOptions{TTL: ttl, Now: in.Now})
	return linkOf(made, err, u.Name)
}

// linkTime parses the lifetime of a link, or returns 0 for the default. It returns an error if
// links are useless here, because users can sign in with neither passwords nor passkeys.
func (s *Service) linkTime(text string, most time.Duration) (time.Duration, error) {
	site, err := s.Config.Site()
	if err != nil {
		return 0, err
	}
	if !s.Config.Login.Local && !site.Offered() {
		return 0, fault(ErrConflict,
			"a link would be of no use: login.local is false, and passkeys do not work here, since %s", site.Missing)
	}
	if text == "" {
		return 0, nil
	}
	var ttl config.Duration
	if err := ttl.UnmarshalText([]byte(text)); err != nil {
		return 0, fault(ErrInvalid, "ttl: %v", err)
	}
	if d := time.Duration(ttl); d < users.MinLinkTTL || d > most {
		return 0, fault(ErrInvalid, "ttl is not between 1m and %s", config.Duration(most))
	}
	return time.Duration(ttl), nil
}

// linkOf returns the view of a created link, including one that could not be sent.
func linkOf(l users.Link, err error, name string) (Link, error) {
	if l.URL == "" {
		return Link{}, ExplainUser(err, name)
	}
	out := Link{URL: l.URL, NotBefore: l.NotBefore.UTC(), ExpiresAt: l.ExpiresAt.UTC(), Mail: l.Mail}
	if err != nil {
		out.Warning, out.Mail = fmt.Sprintf("the link could not be sent to %s, so hand it over: %v", l.Mail, err), ""
	}
	return out, nil
}

func (s *Service) openLinks(ctx context.Context, in OpenLinks) (Page[OpenLink], error) {
	var from storage.Hash
	if in.After != "" {
		last, err := hex.DecodeString(in.After)
		if err != nil || len(last) != len(from) {
			return Page[OpenLink]{}, fault(ErrInvalid, "after is not the next of a page")
		}
		copy(from[:], last)
	}
	found, err := s.Users.OpenLinks(ctx, from, in.bounded()+1)
	if err != nil {
		return Page[OpenLink]{}, err
	}
	names := s.Names()
	p := page(found, in.bounded(), func(l storage.OneTimeLink) OpenLink {
		if l.UserID != "" {
			l.Name = names.User(ctx, l.UserID)
		}
		return OpenLink{
			Kind: string(l.Kind), Name: l.Name, User: l.UserID, Mail: l.Mail,
			Admin: l.Role == Administrator, Role: l.Role, Groups: l.Groups,
			NotBefore: l.NotBefore.UTC(), ExpiresAt: l.ExpiresAt.UTC(), CreatedAt: l.CreatedAt.UTC(),
		}
	}, func(l storage.OneTimeLink) string { return hex.EncodeToString(l.Hash[:]) })
	p.Items = slices.DeleteFunc(p.Items, func(l OpenLink) bool { return in.Name != "" && !l.of(in.Name) })
	return p, nil
}

// of reports whether the link belongs to a user, given by name or ID.
func (l OpenLink) of(nameOrID string) bool {
	if identifier.Is(nameOrID) {
		return l.User == nameOrID
	}
	return strings.EqualFold(l.Name, nameOrID)
}

func (s *Service) withdrawLinks(ctx context.Context, in UserName) (LinksEnded, error) {
	u, err := s.Users.Find(ctx, in.Name)
	if err == nil {
		in.Name = u.ID
	} else if !errors.Is(err, users.ErrUnknown) {
		return LinksEnded{}, err
	}
	n, err := s.Users.WithdrawLinks(ctx, in.Name)
	in.Name = cmp.Or(u.Name, in.Name)
	if errors.Is(err, users.ErrLink) {
		return LinksEnded{}, fault(ErrNotFound, "there is no open link of %q; see: mcp-authd user links", in.Name)
	}
	return LinksEnded{in.Name, n}, err
}
