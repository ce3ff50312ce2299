package thirdparty

import (
	"slices"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/recent"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestProviderGroups: RU-19. People are in a group here for as long as their provider names its group.
func TestProviderGroups(t *testing.T) {
	alone := func(*Config) {}
	detached := func(c *Config) { c.Connectors[0].Detached = true }
	introspected := func(c *Config) {
		c.Connectors[0].IntrospectionURL = c.Connectors[0].Issuer + "/introspect"
	}
	start := func(t *testing.T, edit func(*Config)) *rig {
		r := newRig(t, edit)
		for _, group := range []string{"staff", "editors"} {
			if err := r.store.CreateGroup(t.Context(), storage.Group{Name: group, CreatedAt: r.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		r.put(storage.ProviderGroup{Group: "staff", Connector: "corp", Name: "engineering"})
		r.put(storage.ProviderGroup{Group: "editors", Connector: "other", Name: "engineering"})
		r.up.SetPeople(withGroups(fakeidp.Alice, "engineering", "sales"))
		return r
	}
	putOut := func(r *rig) { r.up.SetPeople(withGroups(fakeidp.Alice, "sales")) }

	t.Run("the group that the provider names, and no other", func(t *testing.T) {
		r := start(t, alone)
		a, _ := r.signIn("")
		r.wantGroups(a.User.ID, "staff")
		if got, err := r.ProviderGroups(t.Context(), a.User.ID, []string{"editors"}); err != nil || len(got) != 0 {
			t.Errorf("of another group: got %+v, %v", got, err)
		}
		r.wantGroups("usr_unknown")
	})
	t.Run("until the provider names it no longer", func(t *testing.T) {
		for name, tt := range map[string]struct {
			edit   func(*Config)
			behave func(*fakeidp.Behaviour)
		}{
			"in user info": {alone, func(*fakeidp.Behaviour) {}},
			"in the ID token alone": {alone, func(b *fakeidp.Behaviour) {
				b.EditUserInfo = func(claims map[string]any) { delete(claims, "groups") }
			}},
			"beside introspection": {introspected, func(*fakeidp.Behaviour) {}},
		} {
			t.Run(name, func(t *testing.T) {
				r := start(t, tt.edit)
				r.up.Behave(tt.behave)
				a, _ := r.signIn("")
				r.wantGroups(a.User.ID, "staff")
				putOut(r)
				r.wantGroups(a.User.ID, "staff") // it was asked a moment ago
				r.Advance(6 * time.Minute)
				r.wantGroups(a.User.ID)
			})
		}
	})
	t.Run("the newest sign-in decides where the provider is not asked again", func(t *testing.T) {
		r := start(t, detached)
		a, _ := r.signIn("")
		r.Advance(time.Hour)
		putOut(r)
		r.wantGroups(a.User.ID, "staff")
		r.signIn("")
		r.wantGroups(a.User.ID)
	})
	t.Run("the newest sign-in decides there also when its session has ended", func(t *testing.T) {
		r := start(t, detached)
		a, _ := r.signIn("")
		r.Advance(time.Hour)
		putOut(r)
		b, _ := r.signIn("")
		_, err := r.store.EndUpstreams(t.Context(), storage.UpstreamKey{ID: b.Upstream}, "revoked", r.Now())
		if err != nil {
			t.Fatal(err)
		}
		r.wantGroups(a.User.ID)
		r.Advance(time.Hour)
		r.up.SetPeople(withGroups(fakeidp.Alice, "engineering"))
		r.wantGroups(a.User.ID)
		r.signIn("")
		r.wantGroups(a.User.ID, "staff")
	})
	t.Run("an ended session leaves the decision to the one before", func(t *testing.T) {
		r := start(t, alone)
		a, _ := r.signIn("")
		r.Advance(time.Second)
		b, _ := r.signIn("")
		over := func(a delegation.Result) {
			_, err := r.store.EndUpstreams(t.Context(), storage.UpstreamKey{ID: a.Upstream}, "revoked", r.Now())
			if err != nil {
				t.Fatal(err)
			}
		}
		over(b)
		r.wantGroups(a.User.ID, "staff")
		over(a)
		r.wantGroups(a.User.ID)
	})
	t.Run("the server says when it cannot tell", func(t *testing.T) {
		r := start(t, alone)
		a, _ := r.signIn("")
		r.up.FailAll(fakeidp.Down)
		r.Advance(6 * time.Minute)
		r.wantGroups(a.User.ID, "staff")
		r.Advance(time.Hour)
		_, err := r.ProviderGroups(t.Context(), a.User.ID, []string{"staff"})
		if code(err) != oauth.TemporarilyUnavailable {
			t.Errorf("got %v, want temporarily_unavailable", err)
		}
	})
	t.Run("a provider group that was taken out counts no longer", func(t *testing.T) {
		r := start(t, alone)
		a, _ := r.signIn("")
		r.wantGroups(a.User.ID, "staff")
		g := storage.ProviderGroup{Group: "staff", Connector: "corp", Name: "engineering"}
		if err := r.store.RemoveProviderGroup(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		r.Advance(recent.TTL)
		r.wantGroups(a.User.ID)
	})
}

// put puts a provider group into a group.
func (r *rig) put(g storage.ProviderGroup) {
	r.t.Helper()
	g.AddedAt = r.Now()
	if err := r.store.AddProviderGroup(r.t.Context(), g); err != nil {
		r.t.Fatal(err)
	}
}

// wantGroups checks which groups a person is in by provider groups.
func (r *rig) wantGroups(userID string, want ...string) {
	r.t.Helper()
	got, err := r.ProviderGroups(r.t.Context(), userID, []string{"staff", "editors"})
	var groups []string
	for _, g := range got {
		groups = append(groups, g.Group)
	}
	if err != nil || !slices.Equal(groups, want) {
		r.t.Errorf("RU-19: got %q, %v, want %q", groups, err, want)
	}
}
