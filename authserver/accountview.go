package authserver

import (
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver/internal/account"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// apps returns the connected applications for a page.
func (v *views) apps(page *account.View, form pages.AccountForm) pages.AccountApps {
	out := pages.AccountApps{AccountForm: form}
	if page.Next.Connections != "" {
		out.NextURL = v.paths.account + "?" + url.Values{"before": {page.Next.Connections}}.Encode()
	}
	for i, c := range page.Connections {
		if i == 0 || c.Whole.Key != page.Connections[i-1].Whole.Key {
			out.Apps = append(out.Apps, pages.ConnectedApp{
				ID: c.ID, Client: clientParty(c.Client), SelfRegistered: !v.clients.Vouched(c.Client),
				Connections: c.Whole.Connections, Several: c.Whole.Servers > 1, Used: c.Whole.UsedAt,
			})
		}
		app := &out.Apps[len(out.Apps)-1]
		server := v.connected(page.Visit.User, c)
		if client := clientParty(c.Client); client.Name != app.Client.Name || client.Host != app.Client.Host {
			server.Client = client
		}
		app.Servers = append(app.Servers, server)
		app.Several = app.Several || len(app.Servers) > 1
	}
	for _, p := range page.Pauses {
		out.Paused = append(out.Paused, pages.PausedApp{
			ID: p.ID, Client: pages.Party{Name: p.ClientName}, Server: resourceParty(p.Server), Since: p.At,
		})
	}
	if page.Next.Pauses != "" {
		out.MorePausedURL = v.paths.account + "?" + url.Values{"paused": {page.Next.Pauses}}.Encode()
	}
	return out
}

// connected returns an application's access to one MCP server, for the account page.
func (v *views) connected(user storage.User, c account.Connection) pages.ConnectedServer {
	out := pages.ConnectedServer{
		ID: c.ID, Server: resourceParty(c.Resource), Scopes: grantedScopes(c.Resource, c.Scopes),
		StaySignedIn: c.Scopes.Has(oauth.OfflineAccess), Username: user.Name,
		Given:     pages.Event{At: c.CreatedAt, Agent: agentText(c.GivenAgent), From: c.GivenFrom},
		FirstUsed: c.FirstUsedAt,
		Used:      pages.Event{At: c.UsedAt, From: c.UsedFrom},
		LastCall:  pages.Call(c.LastCall),
		Handed:    v.handed(c),
		By:        organization(c),
		Paused:    !c.PausedAt.IsZero(),
	}
	if c.Account.Connector != "" {
		out.Account = v.account(c.Account)
	}
	return out
}

// organization returns the trusted issuer whose assertion the grant was issued for (AS-232). Its
// host identifies it on the page.
func organization(c account.Connection) pages.Organization {
	o := pages.Organization{Entry: c.TrustID}
	if u, err := url.Parse(c.Issuer); err == nil {
		o.Host = u.Host
	}
	return o
}

// handed returns the link to an application's sub-agents.
func (v *views) handed(c account.Connection) pages.Handed {
	return pages.Handed{
		Helpers: c.Helpers, URL: v.paths.prefix + pageHelpers + "?" + url.Values{"grant": {c.ID}}.Encode(),
	}
}

// grantedScopes returns the displayed scopes of a grant, including scopes that no longer exist.
func grantedScopes(r storage.Resource, granted oauth.Scopes) (out []pages.Scope) {
	required := policy.Required(r)
	for _, name := range granted.Without(oauth.Scopes{oauth.OfflineAccess}) {
		s := pages.Scope{
			Name: name, Identity: name == oauth.OpenID && len(r.Scopes) == 0, Fixed: required.Has(name),
		}
		for _, t := range r.Scopes {
			if t.Name == name {
				s.Description, s.Dangerous = t.Description, t.Dangerous
			}
		}
		out = append(out, s)
	}
	return out
}

// signIns returns the sessions for a page.
func (v *views) signIns(page *account.View, form pages.AccountForm) pages.AccountSignIns {
	out := pages.AccountSignIns{AccountForm: form, More: page.MoreSignIns, Others: len(page.SignIns) > 1}
	for _, s := range page.SignIns {
		out.SignIns = append(out.SignIns, pages.SignIn{
			ID: s.ID(), Here: s.Hash == page.Visit.Session.Hash, Agent: agentText(s.Agent), From: s.Address,
			Begun: s.CreatedAt, Seen: s.SeenAt,
		})
	}
	return out
}

// agentText returns the name of a browser in the language of the page.
func agentText(agent string) pages.Text {
	if browser, system, ok := strings.Cut(agent, " on "); ok {
		return pages.Say("account.agent", "browser", browser, "system", system)
	}
	return pages.Given(agent)
}
