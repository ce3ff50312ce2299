package admin_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestRules checks that administrators can give scopes to users and groups, and that nonsensical
// rules are refused (RU-19).
func TestRules(t *testing.T) {
	now := time.Now().Truncate(time.Millisecond)
	s, ctx := newService(t, now), t.Context()
	s.Config = &config.Loaded{Config: &config.Config{}}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const server, own = "https://mcp.example/mcp", "https://auth.example/mcp/admin"
	s.Own = []storage.Resource{{URI: own, Own: true}}
	check(s.Store.AddResource(ctx, storage.Resource{
		URI: server, Name: "Notes", CreatedAt: now, Scopes: []storage.ScopeText{
			{Name: "notes", EveryCall: true, Default: true}, {Name: "notes:write"},
			{Name: "notes:admin", Implies: []string{"notes:write"}},
		},
	}))
	for _, name := range []string{"bob", "carol"} {
		check(s.Store.CreateUser(ctx, storage.User{ID: "usr_" + name, Name: name, CreatedAt: now}))
	}
	by := s.Operator()
	of := func(change func(*admin.NewRule)) error {
		in := admin.NewRule{Resource: server}
		change(&in)
		_, err := admin.RuleSet.Do(ctx, by, in)
		return err
	}
	at := func(uri string) error {
		return of(func(r *admin.NewRule) { r.Resource, r.Everyone, r.None = uri, true, true })
	}
	add := func(group string, users ...string) error {
		_, err := admin.GroupAdd.Do(ctx, by, admin.GroupMembers{Group: group, Users: users})
		return err
	}
	check(add("editors", "carol"))
	bobMay := func(scopes ...string) error {
		return of(func(r *admin.NewRule) { r.User, r.Scopes = "bob", scopes })
	}
	check(bobMay("notes"))
	check(of(func(r *admin.NewRule) { r.Group, r.Scopes = "editors", []string{"notes", "notes:admin"} }))

	for what, want := range map[string]struct {
		err  error
		says string
	}{
		"a group in itself":    {add("editors", "editors"), "the members of a group are people"},
		"a group in a group":   {add("staff", "editors"), "the members of a group are people"},
		"an odd name":          {add("All Staff"), "not a valid group name"},
		"the same group again": {add("editors"), "is there already"},
		"an unknown group": {of(func(r *admin.NewRule) { r.Group, r.All = "nobody", true }),
			"mcp-authd group add nobody"},
		"an unknown person": {of(func(r *admin.NewRule) { r.User, r.All = "dave", true }), `no user "dave"`},
		"an unknown scope":  {bobMay("x"), "which has notes"},
		"nobody in":         {bobMay("notes:write"), "nobody in"},
		"nobody named":      {of(func(r *admin.NewRule) { r.All = true }), "say whom the rule is about"},
		"nothing said":      {of(func(r *admin.NewRule) { r.Everyone = true }), "the scopes, or all, or none"},
		"tools to approve of nothing": {of(func(r *admin.NewRule) {
			r.Everyone, r.None, r.Approve = true, true, []string{"pay"}
		}), "has no tools to approve"},
		"too many tools to approve": {of(func(r *admin.NewRule) {
			r.Everyone, r.All, r.Approve = true, true, make([]string, storage.MaxRuleTools+1)
		}), "use a pattern"},
		"an empty name to approve": {of(func(r *admin.NewRule) {
			r.Everyone, r.All, r.Approve = true, true, []string{""}
		}), "must be the name of a tool"},
		"two things":          {of(func(r *admin.NewRule) { r.Everyone, r.All, r.None = true, true, true }), "or none"},
		"the administration":  {at(own), "last administrator"},
		"an unknown resource": {at("https://x.example"), "no stored resource"},
	} {
		if want.err == nil || !strings.Contains(want.err.Error(), want.says) {
			t.Errorf("RU-19 %s: got %v, want words on %q", what, want.err, want.says)
		}
	}
	_, err := admin.GroupDelete.Do(ctx, by, admin.GroupName{Name: "editors"})
	if !errors.Is(err, admin.ErrConflict) {
		t.Errorf("RU-19 a group that a rule names was deleted: %v", err)
	}
	bob, err := admin.UserShow.Do(ctx, by, admin.UserName{Name: "bob"})
	check(err)
	if len(bob.Access) != 1 || !slices.Equal(bob.Access[0].Scopes, []string{"notes"}) ||
		bob.Access[0].By != "user bob" {
		t.Errorf("RU-19 what Bob may have: got %+v, want notes by the rule about him", bob.Access)
	}
	carol, err := admin.UserShow.Do(ctx, by, admin.UserName{Name: "carol"})
	check(err)
	if !slices.Equal(carol.Groups, []string{"editors"}) || len(carol.Access) != 1 ||
		!slices.Equal(carol.Access[0].Scopes, []string{"notes", "notes:write", "notes:admin"}) ||
		carol.Access[0].By != "group editors" {
		t.Errorf("RU-19 what Carol may have: got %+v, want all that notes:admin includes, by her group", carol.Access)
	}
	r, err := admin.ResourceShow.Do(ctx, by, admin.ResourceURL{URI: server})
	check(err)
	if len(r.Rules) != 2 {
		t.Errorf("RU-19 the rules of the MCP server: got %+v, want two", r.Rules)
	}
}

// TestRuleFindings checks that rules that admit nobody or everybody are reported (RU-19).
func TestRuleFindings(t *testing.T) {
	const server = "https://mcp.example/mcp"
	known := []storage.Resource{{URI: server, Scopes: []storage.ScopeText{
		{Name: "notes", EveryCall: true}, {Name: "notes:write"},
	}}}
	groups := []storage.Group{{Name: "staff", Members: 1}, {Name: "empty"}, {Name: "okta", ProviderGroups: 1}}
	group := func(name string) storage.AccessRule {
		return storage.AccessRule{Resource: server, Group: name, All: true}
	}
	for _, tt := range []struct {
		name  string
		rules []storage.AccessRule
		says  string // "" for no finding
	}{
		{"a group with members", []storage.AccessRule{group("staff")}, ""},
		{"a group with a provider group", []storage.AccessRule{group("okta")}, ""},
		{"an empty group", []storage.AccessRule{group("empty")}, "let nobody in"},
		{"everyone beside a group", []storage.AccessRule{group("staff"), {Resource: server, All: true}},
			"everyone may use every scope"},
		{"a scope that every call needs is missing", []storage.AccessRule{
			{Resource: server, UserID: "usr_b", UserName: "bob", Scopes: []string{"notes:write"}}}, "lets nobody in"},
		{"an unknown MCP server", []storage.AccessRule{{Resource: "https://gone.example/mcp", All: true}},
			"not known here"},
		{"a group that may less than everyone", []storage.AccessRule{
			{Resource: server, Group: "staff", Scopes: []string{"notes"}}, {Resource: server, All: true}}, ""},
		{"a group that must approve calls", []storage.AccessRule{
			{Resource: server, Group: "staff", All: true, Approve: []string{"pay"}},
			{Resource: server, All: true}}, ""},
		{"everyone but a group must approve calls", []storage.AccessRule{
			group("staff"), {Resource: server, All: true, Approve: []string{"pay"}}}, ""},
		{"a group that is not there", []storage.AccessRule{
			{Resource: server, Group: "stuff", All: true, Config: true}, group("staff")}, "no such group"},
	} {
		got := strings.Join(admin.RuleFindings(tt.rules, groups, known), "; ")
		if tt.says == "" && got != "" || !strings.Contains(got, tt.says) {
			t.Errorf("RU-19 %s: got %q, want %q", tt.name, got, tt.says)
		}
	}
}

// TestProviderGroups: RU-19. Operators put people of a configured provider into groups.
func TestProviderGroups(t *testing.T) {
	s, ctx := newService(t, time.Now()), t.Context()
	s.Config = &config.Loaded{Config: &config.Config{ThirdParty: []config.Connector{{ID: "okta"}}}}
	by := s.Operator()
	add := func(provider, name string) error {
		_, err := admin.GroupAdd.Do(ctx, by, admin.GroupMembers{
			Group: "staff", ProviderMembers: admin.ProviderMembers{Provider: provider, ProviderGroup: name},
		})
		return err
	}
	remove := func(provider, name string) error {
		_, err := admin.GroupRemove.Do(ctx, by, admin.GroupLeavers{
			Group: "staff", ProviderMembers: admin.ProviderMembers{Provider: provider, ProviderGroup: name},
		})
		return err
	}
	for range 2 { // the second time it is in the group already
		if err := add("okta", "engineering"); err != nil {
			t.Fatal(err)
		}
	}
	for what, want := range map[string]struct {
		err  error
		says string
	}{
		"an unknown provider":  {add("acme", "engineering"), `no provider "acme"`},
		"no group":             {add("okta", ""), "both the provider and its group"},
		"no provider":          {add("", "engineering"), "both the provider and its group"},
		"blanks around":        {add("okta", " engineering"), "cannot be a group"},
		"a line end":           {add("okta", "a\nb"), "cannot be a group"},
		"what is not in it":    {remove("okta", "sales"), "is not in the group staff"},
		"no group to take out": {remove("okta", ""), "both the provider and its group"},
		"nothing to take out":  {remove("", ""), "mcp-authd group delete staff"},
	} {
		if want.err == nil || !strings.Contains(want.err.Error(), want.says) {
			t.Errorf("RU-19 %s: got %v, want words on %q", what, want.err, want.says)
		}
	}
	s.Config.ThirdParty = nil
	all, err := s.Store.ListProviderGroups(ctx)
	if err != nil || len(all) != 1 {
		t.Fatalf("got %+v, %v", all, err)
	}
	found := admin.ProviderGroupFindings(all, nil)
	if len(found) != 1 || !strings.Contains(found[0], "okta is not configured") {
		t.Errorf("RU-19 a provider that is not configured: got %q", found)
	}
	if err := remove("okta", "engineering"); err != nil {
		t.Errorf("RU-19 groups of a removed provider must go: %v", err)
	}
}
