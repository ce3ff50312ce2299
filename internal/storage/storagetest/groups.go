package storagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func (e *env) account(t *testing.T, id, name string) {
	t.Helper()
	check(t, e.s.CreateUser(e.ctx, storage.User{ID: id, Name: name, CreatedAt: e.now}))
}

func (e *env) group(t *testing.T, name string) {
	t.Helper()
	check(t, e.s.CreateGroup(e.ctx, storage.Group{Name: name, Description: "of " + name, CreatedAt: e.now}))
}

func groups(t *testing.T, e *env) {
	e.account(t, "usr_b", "Bob")
	e.account(t, "usr_a", "anna")
	e.group(t, "staff")
	e.group(t, "editors")
	t.Run("RU-19 a group is created once", func(t *testing.T) {
		wantErr(t, e.s.CreateGroup(e.ctx, storage.Group{Name: "staff", CreatedAt: e.now}), storage.ErrExists)
	})
	t.Run("RU-19 an account is in the groups that it was put into", func(t *testing.T) {
		check(t, e.s.AddMember(e.ctx, "staff", "usr_b", e.now))
		check(t, e.s.AddMember(e.ctx, "staff", "usr_a", e.now))
		check(t, e.s.AddMember(e.ctx, "editors", "usr_b", e.now))
		check(t, e.s.AddMember(e.ctx, "editors", "usr_b", e.now.Add(time.Hour)))
		got, err := e.s.Membership(e.ctx, "usr_b")
		check(t, err)
		same(t, got, storage.Membership{UserID: "usr_b", Name: "Bob", Groups: []string{"editors", "staff"}})
		all, err := e.s.ListGroups(e.ctx)
		check(t, err)
		same(t, all, []storage.Group{
			{Name: "editors", Description: "of editors", CreatedAt: e.now, Members: 1},
			{Name: "staff", Description: "of staff", CreatedAt: e.now, Members: 2},
		})
	})
	t.Run("RU-19 members are listed by name, page by page", func(t *testing.T) {
		first, err := e.s.GroupMembers(e.ctx, "staff", "", 1)
		check(t, err)
		same(t, first, []storage.Member{{UserID: "usr_a", Name: "anna", AddedAt: e.now}})
		second, err := e.s.GroupMembers(e.ctx, "staff", "anna", 1)
		check(t, err)
		same(t, second, []storage.Member{{UserID: "usr_b", Name: "Bob", AddedAt: e.now}})
	})
	t.Run("RU-19 there are no members of unknown groups, and no unknown members", func(t *testing.T) {
		wantErr(t, e.s.AddMember(e.ctx, "nobody", "usr_b", e.now), storage.ErrNotFound)
		wantErr(t, e.s.AddMember(e.ctx, "staff", "usr_x", e.now), storage.ErrNotFound)
		wantErr(t, e.s.RemoveMember(e.ctx, "editors", "usr_a"), storage.ErrNotFound)
		_, err := e.s.Membership(e.ctx, "usr_x")
		wantErr(t, err, storage.ErrNotFound)
		wantErr(t, e.s.DeleteGroup(e.ctx, "nobody"), storage.ErrNotFound)
	})
	t.Run("RU-19 who was taken out is in no longer", func(t *testing.T) {
		check(t, e.s.RemoveMember(e.ctx, "editors", "usr_b"))
		got, err := e.s.Membership(e.ctx, "usr_b")
		check(t, err)
		same(t, got.Groups, []string{"staff"})
	})
	t.Run("RU-19 a deleted account leaves its groups, and a deleted group its members", func(t *testing.T) {
		check(t, e.s.DeleteUser(e.ctx, "usr_a", e.now))
		members, err := e.s.GroupMembers(e.ctx, "staff", "", 10)
		check(t, err)
		same(t, len(members), 1)
		check(t, e.s.DeleteGroup(e.ctx, "staff"))
		got, err := e.s.Membership(e.ctx, "usr_b")
		check(t, err)
		same(t, len(got.Groups), 0)
		e.group(t, "staff")
		members, err = e.s.GroupMembers(e.ctx, "staff", "", 10)
		check(t, err)
		same(t, len(members), 0)
	})
	t.Run("RU-19 there are MaxGroups groups at most", func(t *testing.T) {
		for i := range storage.MaxGroups - 2 {
			e.group(t, fmt.Sprint("g", i))
		}
		wantErr(t, e.s.CreateGroup(e.ctx, storage.Group{Name: "more", CreatedAt: e.now}), storage.ErrFull)
	})
}

func providerGroups(t *testing.T, e *env) {
	e.group(t, "staff")
	e.group(t, "editors")
	of := func(group, connector, name string) storage.ProviderGroup {
		return storage.ProviderGroup{Group: group, Connector: connector, Name: name, AddedAt: e.now}
	}
	want := func(t *testing.T, want ...storage.ProviderGroup) {
		t.Helper()
		got, err := e.s.ListProviderGroups(e.ctx)
		check(t, err)
		same(t, got, want)
	}
	engineers, sales := of("staff", "okta", "Engineering"), of("staff", "acme", "sales")
	writers := of("editors", "okta", "a b")
	t.Run("RU-19 provider groups are listed by group, connector and name", func(t *testing.T) {
		want(t)
		for _, g := range []storage.ProviderGroup{engineers, sales, writers} {
			check(t, e.s.AddProviderGroup(e.ctx, g))
		}
		want(t, writers, sales, engineers)
		all, err := e.s.ListGroups(e.ctx)
		check(t, err)
		same(t, all[1].ProviderGroups, 2)
	})
	t.Run("RU-19 a provider group that is in the group already stays", func(t *testing.T) {
		again := sales
		again.AddedAt = e.now.Add(time.Hour)
		check(t, e.s.AddProviderGroup(e.ctx, again))
		want(t, writers, sales, engineers)
	})
	t.Run("RU-19 there are no provider groups of unknown groups", func(t *testing.T) {
		wantErr(t, e.s.AddProviderGroup(e.ctx, of("nobody", "okta", "x")), storage.ErrNotFound)
		inSmallLetters := of("staff", "okta", "engineering")
		wantErr(t, e.s.RemoveProviderGroup(e.ctx, inSmallLetters), storage.ErrNotFound)
	})
	t.Run("RU-19 a provider group is taken out, and goes with its group", func(t *testing.T) {
		check(t, e.s.RemoveProviderGroup(e.ctx, engineers))
		want(t, writers, sales)
		check(t, e.s.DeleteGroup(e.ctx, "staff"))
		want(t, writers)
	})
	t.Run("RU-19 there are MaxProviderGroups at most", func(t *testing.T) {
		for i := range storage.MaxProviderGroups - 1 {
			check(t, e.s.AddProviderGroup(e.ctx, of("editors", "acme", fmt.Sprint(i))))
		}
		wantErr(t, e.s.AddProviderGroup(e.ctx, of("editors", "acme", "more")), storage.ErrFull)
		check(t, e.s.AddProviderGroup(e.ctx, writers))
	})
}

func accessRules(t *testing.T, e *env) {
	const here, there = "https://a.example/mcp", "https://b.example/mcp"
	e.account(t, "usr_b", "Bob")
	e.group(t, "staff")
	of := func(resource string) storage.AccessRule { return storage.AccessRule{Resource: resource, SetAt: e.now} }
	bob, staff, all := of(here), of(here), of(here)
	bob.UserID, bob.Scopes, bob.Approve = "usr_b", oauth.Scopes{"notes"}, []string{"pay", "delete_*"}
	staff.Group, staff.All = "staff", true
	elsewhere := of(there)
	elsewhere.Group = "staff" // does not exist
	list := func() []storage.AccessRule {
		t.Helper()
		out, err := e.s.ListAccessRules(e.ctx)
		check(t, err)
		return out
	}
	t.Run("RU-19 a rule is for a person, a group or everyone", func(t *testing.T) {
		for _, r := range []storage.AccessRule{bob, staff, all, elsewhere} {
			check(t, e.s.PutAccessRule(e.ctx, r))
		}
		bob.UserName = "Bob"
		same(t, list(), []storage.AccessRule{all, staff, bob, elsewhere})
	})
	t.Run("RU-19 a rule replaces the one of its subject there", func(t *testing.T) {
		staff.All, staff.Scopes, staff.SetAt = false, oauth.Scopes{"notes", "notes:write"}, e.now.Add(time.Hour)
		staff.Approve = []string{"pay"}
		check(t, e.s.PutAccessRule(e.ctx, staff))
		same(t, list(), []storage.AccessRule{all, staff, bob, elsewhere})
	})
	t.Run("RU-19 there are no rules for unknown people and groups", func(t *testing.T) {
		wrong := of(here)
		wrong.UserID = "usr_x"
		wantErr(t, e.s.PutAccessRule(e.ctx, wrong), storage.ErrNotFound)
		wrong.UserID, wrong.Group = "", "nobody"
		wantErr(t, e.s.PutAccessRule(e.ctx, wrong), storage.ErrNotFound)
		wantErr(t, e.s.DeleteAccessRule(e.ctx, wrong), storage.ErrNotFound)
		same(t, len(list()), 4)
	})
	t.Run("RU-19 a group that a rule names stays", func(t *testing.T) {
		wantErr(t, e.s.DeleteGroup(e.ctx, "staff"), storage.ErrInUse)
		check(t, e.s.DeleteAccessRule(e.ctx, staff))
		wantErr(t, e.s.DeleteGroup(e.ctx, "staff"), storage.ErrInUse)
		check(t, e.s.DeleteAccessRule(e.ctx, elsewhere))
		check(t, e.s.DeleteGroup(e.ctx, "staff"))
	})
	t.Run("RU-19 the rule of a person goes with the account", func(t *testing.T) {
		check(t, e.s.DeleteUser(e.ctx, "usr_b", e.now))
		same(t, list(), []storage.AccessRule{all})
	})
	t.Run("RU-19 there are MaxAccessRules rules at most, and those can be changed", func(t *testing.T) {
		for i := range storage.MaxAccessRules - 1 {
			check(t, e.s.PutAccessRule(e.ctx, of(fmt.Sprint("https://", i, ".example/mcp"))))
		}
		wantErr(t, e.s.PutAccessRule(e.ctx, of("https://more.example/mcp")), storage.ErrFull)
		all.All = true
		check(t, e.s.PutAccessRule(e.ctx, all))
		same(t, len(list()), storage.MaxAccessRules)
	})
}
