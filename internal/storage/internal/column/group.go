package column

import (
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// RuleColumns are the columns of access_rules r and users u that ReadAccessRule reads.
const RuleColumns = "r.resource, r.user_id, u.name, r.group_name, r.scopes, r.all_scopes, r.set_at, r.approve"

// everyone is the subject of a rule for all users.
const everyone = "everyone"

// RuleSubject returns the subject of a rule in the form of its key.
func RuleSubject(r storage.AccessRule) string {
	switch {
	case r.UserID != "":
		return "user:" + r.UserID
	case r.Group != "":
		return "group:" + r.Group
	}
	return everyone
}

// RuleValues returns the values of a rule: resource, subject, user_id, group_name, scopes,
// all_scopes, set_at, approve.
func RuleValues(r storage.AccessRule) []any {
	all := int64(0)
	if r.All {
		all = 1
	}
	return []any{
		r.Resource, RuleSubject(r), Text(r.UserID), Text(r.Group), List(r.Scopes), all, Millis(r.SetAt),
		List(r.Approve),
	}
}

// ReadAccessRule reads RuleColumns of a row.
func ReadAccessRule(row interface{ Scan(dest ...any) error }) (r storage.AccessRule, err error) {
	var userID, userName, group *string
	var scopes, approve string
	var all, at int64
	if err := row.Scan(&r.Resource, &userID, &userName, &group, &scopes, &all, &at, &approve); err != nil {
		return r, err
	}
	r.UserID, r.UserName, r.Group = OptText(userID), OptText(userName), OptText(group)
	r.All, r.SetAt = all != 0, Time(at)
	names, err := ParseList[string](scopes)
	if err != nil {
		return r, err
	}
	r.Scopes = oauth.Scopes(names)
	r.Approve, err = ParseList[string](approve)
	return r, err
}

// ListGroups lists groups, for ReadGroup.
const ListGroups = `SELECT g.name, g.description, g.created_at,
	(SELECT count(*) FROM group_members m WHERE m.group_name = g.name),
	(SELECT count(*) FROM provider_groups p WHERE p.group_name = g.name) FROM account_groups g ORDER BY g.name`

// ReadGroup reads a row of ListGroups.
func ReadGroup(row interface{ Scan(dest ...any) error }) (g storage.Group, err error) {
	var created int64
	err = row.Scan(&g.Name, &g.Description, &created, &g.Members, &g.ProviderGroups)
	g.CreatedAt = Time(created)
	return g, err
}

// ReadMember reads the id, the name and the time of a member of a group.
func ReadMember(row interface{ Scan(dest ...any) error }) (m storage.Member, err error) {
	var added int64
	err = row.Scan(&m.UserID, &m.Name, &added)
	m.AddedAt = Time(added)
	return m, err
}

// ListProviderGroups lists provider groups, for ReadProviderGroup.
const ListProviderGroups = `SELECT group_name, connector, name, added_at FROM provider_groups
ORDER BY group_name, connector, name`

// ReadProviderGroup reads a row of ListProviderGroups.
func ReadProviderGroup(row interface{ Scan(dest ...any) error }) (g storage.ProviderGroup, err error) {
	var added int64
	err = row.Scan(&g.Group, &g.Connector, &g.Name, &added)
	g.AddedAt = Time(added)
	return g, err
}
