package console

import (
	"net/url"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

// goes lists the access that an operation would take away at this moment, before a user confirms it
// (OB-10).
func (v *view) goes(name string, subject url.Values) []string {
	who := subject.Get("name")
	switch name {
	case "user delete":
		return lines("the account and its authentication methods", v.browsers(who), v.grantsOf(admin.Which{User: who}))
	case "user disable", "user passwd":
		return lines(v.browsers(who), v.grantsOf(admin.Which{User: who}))
	case "user set-role":
		return lines(v.browsers(who))
	case "user recover":
		return lines("when the link is used: the password", v.browsers(who), v.grantsOf(admin.Which{User: who}))
	case "application revoke", "application block":
		return lines(v.application(subject.Get("id"), false))
	case "application pause":
		return lines("until it is resumed: " + v.application(subject.Get("id"), false))
	case "application delete":
		return lines(v.application(subject.Get("id"), true))
	case "client delete":
		return lines("the client", v.grantsOf(admin.Which{Client: subject.Get("id")}))
	case "client rotate-secret":
		return []string{"the present secret: until it has the new one, the client gets no token"}
	case "resource remove":
		return lines("the MCP server and its scopes", v.grantsOf(admin.Which{Resource: subject.Get("uri")}))
	case "grant revoke":
		return lines(v.grant(subject.Get("id")))
	case "grant pause":
		return lines("until it is resumed: " + v.grant(subject.Get("id")))
	case "proposal accept":
		return v.goesByProposal(subject.Get("id"))
	case "keys revoke":
		return []string{"the key, and every access token that it signed"}
	case "trust disable":
		return []string{"access that was given for assertions of this issuer"}
	case "trust remove":
		return []string{"the issuer, and access that was given for its assertions"}
	}
	return nil
}

// lines returns the texts that are not empty.
func lines(all ...string) (out []string) {
	for _, s := range all {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// grantsOf counts live grants in words.
func (v *view) grantsOf(which admin.Which) string {
	n, err := admin.GrantCounted.Do(v.r.Context(), v.as, which)
	if err != nil || n.Grants == 0 {
		return ""
	}
	text := counted(n.Grants, "grant", "grants")
	if n.More {
		text = "at least " + text
	}
	if which.Client == "" {
		return text + " to " + counted(n.Applications, "application", "applications")
	}
	return text + " of " + counted(n.People, "user", "users")
}

// application describes the grants and registrations of an application.
func (v *view) application(id string, registrations bool) string {
	a, err := admin.ApplicationShow.Do(v.r.Context(), v.as, admin.ApplicationID{ID: id})
	if err != nil {
		return ""
	}
	text := counted(a.Grants, "grant", "grants") + " of " + counted(a.People, "user", "users") + " to " +
		named(a.Name, a.ID)
	if a.More {
		text = "at least " + text
	}
	if registrations {
		text += ", and " + counted(a.Registrations, "registration", "registrations")
	}
	return text
}

// browsers counts a user's signed-in browsers, in words.
func (v *view) browsers(name string) string {
	found, err := admin.UserSessions.Do(v.r.Context(), v.as, admin.UserName{Name: name})
	if err != nil || len(found.Items) == 0 {
		return ""
	}
	return "the sign-in in " + counted(len(found.Items), "browser", "browsers")
}

// grant describes one grant.
func (v *view) grant(id string) string {
	g, err := admin.GrantShow.Do(v.r.Context(), v.as, admin.GrantID{ID: id})
	if err != nil {
		return ""
	}
	text := "the access of " + named(g.ClientName, g.Client) + " to " + g.Resource
	if g.UserName != "" {
		text += " for " + g.UserName
	}
	return text
}
