package storagetest

import (
	"errors"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func grants(t *testing.T, e *env) {
	p := e.person(t)
	var all []storage.Approval
	for range 5 {
		a := e.approval(p)
		check(t, e.s.Approve(e.ctx, a))
		all = append(all, a)
	}
	e.approved(t) // another user's
	check(t, e.s.RevokeGrant(e.ctx, all[4].Grant.ID, storage.ByOperator, e.now))

	t.Run("lists the live grants of a user by id, page by page", func(t *testing.T) {
		var got []storage.Grant
		for after := ""; ; after = got[len(got)-1].ID {
			page, err := e.s.ListGrants(e.ctx, p.ID, "", after, 3)
			check(t, err)
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
		}
		want := map[string]storage.Grant{}
		for _, a := range all[:4] {
			want[a.Grant.ID] = a.Grant
		}
		for i, g := range got {
			same(t, g, want[g.ID])
			if i > 0 && got[i-1].ID >= g.ID {
				t.Errorf("%s comes before %s", got[i-1].ID, g.ID)
			}
		}
		if len(got) != 4 {
			t.Errorf("got %d grants, want 4", len(got))
		}
	})
	t.Run("by client, by both, by neither", func(t *testing.T) {
		for _, c := range []struct {
			user, client string
			want         int
		}{{"", all[0].Grant.ClientID, 1}, {p.ID, all[0].Grant.ClientID, 1}, {"nobody", all[0].Grant.ClientID, 0},
			{"", "", 5}} {
			got, err := e.s.ListGrants(e.ctx, c.user, c.client, "", 100)
			check(t, err)
			if len(got) != c.want {
				t.Errorf("user %q client %q: got %d grants, want %d", c.user, c.client, len(got), c.want)
			}
		}
	})
}

func resources(t *testing.T, e *env) {
	notes := storage.Resource{URI: "https://notes.example/mcp", Name: "Notes", CreatedAt: e.now.Add(time.Second),
		Scopes: []storage.ScopeText{
			{Name: "notes:write", Description: "change your notes", Default: true, Implies: []string{"mcp"},
				Access: storage.AccessWrite, Required: true},
			{Name: "notes:delete", Description: "delete your notes", Access: storage.AccessAdmin, Dangerous: true},
		}}
	files := storage.Resource{URI: "https://files.example/mcp", Name: "Files", CreatedAt: e.now,
		Upstream:  "http://127.0.0.1:3000/mcp",
		ToolRules: []storage.ToolRule{{Name: "delete_*", Scopes: []string{"w"}}, {Name: "drop", Deny: true}},
	}

	t.Run("lists what was added, oldest first", func(t *testing.T) {
		check(t, e.s.AddResource(e.ctx, notes))
		check(t, e.s.AddResource(e.ctx, files))
		got, err := e.s.ListResources(e.ctx)
		check(t, err)
		same(t, got, []storage.Resource{files, notes})
	})
	t.Run("adding it again changes nothing", func(t *testing.T) {
		wantErr(t, e.s.AddResource(e.ctx, storage.Resource{URI: files.URI, Name: "Others", CreatedAt: e.now}),
			storage.ErrExists)
		got, err := e.s.ListResources(e.ctx)
		check(t, err)
		same(t, got, []storage.Resource{files, notes})
	})
	t.Run("replacing it changes name and scopes", func(t *testing.T) {
		files.Name, files.Scopes = "All files", []storage.ScopeText{{Name: "files:read", Description: "read files"}}
		check(t, e.s.ReplaceResource(e.ctx, files, e.now))
		wantErr(t, e.s.ReplaceResource(e.ctx, storage.Resource{URI: "https://none.example/mcp"}, e.now),
			storage.ErrNotFound)
		got, err := e.s.ListResources(e.ctx)
		check(t, err)
		same(t, got, []storage.Resource{files, notes})
	})
	t.Run("replacing it changes where the gateway reaches it, and what its tools need", func(t *testing.T) {
		for _, change := range []func(){
			func() { files.Upstream, files.ToolRules = "https://files.internal/mcp", files.ToolRules[1:] },
			func() { files.Upstream, files.ToolRules, files.Aliases = "", nil, []string{files.URI + "@work"} },
			func() {
				files.Upstream, files.ToolRules = "http://[::1]/mcp", []storage.ToolRule{{Name: "share", Direct: true}}
			},
		} {
			change()
			check(t, e.s.ReplaceResource(e.ctx, files, e.now))
			got, err := e.s.ListResources(e.ctx)
			check(t, err)
			same(t, got, []storage.Resource{files, notes})
		}
	})
	t.Run("removing it revokes its grants and forgets its consents", func(t *testing.T) {
		a := e.approval(e.person(t))
		a.Grant.Resource = notes.URI
		check(t, e.s.Approve(e.ctx, a))
		other := e.approved(t)
		check(t, e.s.RemoveResource(e.ctx, notes.URI, e.now))
		_, err := e.s.RedeemCode(e.ctx, e.redemption(a))
		wantErr(t, err, storage.ErrRevoked)
		v, err := e.s.Visit(e.ctx,
			storage.VisitKey{Session: a.Session, ClientID: a.Grant.ClientID, Resource: notes.URI, Now: e.now})
		check(t, err)
		if v.Consented != nil {
			t.Error("the consent is still there")
		}
		e.wantLive(t, other, true)
		wantErr(t, e.s.RemoveResource(e.ctx, notes.URI, e.now), storage.ErrNotFound)
	})
}

func once(t *testing.T, e *env) {
	t.Run("an identifier is spent once for each purpose", func(t *testing.T) {
		check(t, e.s.Spend(e.ctx, "jti", "x", e.now.Add(time.Minute)))
		wantErr(t, e.s.Spend(e.ctx, "jti", "x", e.now.Add(time.Hour)), storage.ErrSpent)
		check(t, e.s.Spend(e.ctx, "jti", "y", e.now.Add(time.Minute)))
		check(t, e.s.Spend(e.ctx, "other", "x", e.now.Add(time.Minute)))
	})
	t.Run("AS-211 a proof is spent once for each purpose", func(t *testing.T) {
		check(t, e.s.SpendProof(e.ctx, "dpop", "x", e.now.Add(time.Minute)))
		wantErr(t, e.s.SpendProof(e.ctx, "dpop", "x", e.now.Add(time.Hour)), storage.ErrSpent)
		wantErr(t, e.s.Spend(e.ctx, "dpop", "x", e.now.Add(time.Hour)), storage.ErrSpent)
		check(t, e.s.SpendProof(e.ctx, "dpop", "y", e.now.Add(time.Minute)))
		check(t, e.s.SpendProof(e.ctx, "other", "z", e.now.Add(time.Minute)))
		_, err := e.s.Sweep(e.ctx, storage.Retention{Now: e.now.Add(2 * time.Minute)}, 1000)
		check(t, err)
		check(t, e.s.SpendProof(e.ctx, "dpop", "x", e.now.Add(time.Hour)))
	})
}

func failures(t *testing.T, e *env) {
	const window = time.Minute
	key := randomHash()
	fail := func(t *testing.T, after time.Duration, want int) {
		t.Helper()
		n, err := e.s.RecordFailure(e.ctx, key, e.now.Add(after), window)
		check(t, err)
		if n != want {
			t.Errorf("after %v: got %d, want %d", after, n, want)
		}
	}
	count := func(t *testing.T, after time.Duration, want int, last time.Time) {
		t.Helper()
		n, at, err := e.s.FailureCount(e.ctx, key, e.now.Add(after), window)
		check(t, err)
		if n != want || !at.Equal(last) {
			t.Errorf("after %v: got %d at %v, want %d at %v", after, n, at, want, last)
		}
	}
	t.Run("counts within the window of the first failure, then starts again", func(t *testing.T) {
		count(t, 0, 0, time.Time{})
		fail(t, 0, 1)
		fail(t, window-time.Millisecond, 2)
		count(t, window-time.Millisecond, 2, e.now.Add(window-time.Millisecond))
		count(t, window, 0, time.Time{})
		fail(t, window, 1)
		fail(t, window+time.Second, 2)
	})
	t.Run("keys do not mix, and one is forgotten alone", func(t *testing.T) {
		other := randomHash()
		_, err := e.s.RecordFailure(e.ctx, other, e.now, window)
		check(t, err)
		check(t, e.s.ClearFailures(e.ctx, key))
		check(t, e.s.ClearFailures(e.ctx, key))
		count(t, 0, 0, time.Time{})
		n, _, err := e.s.FailureCount(e.ctx, other, e.now, window)
		check(t, err)
		if n != 1 {
			t.Errorf("got %d, want 1", n)
		}
	})
}

// tries checks tries that are counted before they are made (PE-05).
func tries(t *testing.T, e *env) {
	const window = time.Minute
	key := randomHash()
	take := func(t *testing.T, after time.Duration, seen int, want error) {
		t.Helper()
		err := e.s.TakeTry(e.ctx, key, seen, e.now.Add(after), window)
		if want == nil {
			check(t, err)
		} else {
			wantErr(t, err, want)
		}
	}
	count := func(t *testing.T, after time.Duration, want int, last time.Duration) {
		t.Helper()
		n, at, err := e.s.FailureCount(e.ctx, key, e.now.Add(after), window)
		check(t, err)
		if n != want || n > 0 && !at.Equal(e.now.Add(last)) {
			t.Errorf("after %v: got %d at %v, want %d at %v", after, n, at, want, e.now.Add(last))
		}
	}
	t.Run("PE-05 a try is taken by one who has seen the count", func(t *testing.T) {
		take(t, 0, 1, storage.ErrChanged)
		take(t, 0, 0, nil)
		take(t, 0, 0, storage.ErrChanged)
		take(t, time.Second, 1, nil)
		count(t, time.Second, 2, time.Second)
	})
	t.Run("PE-05 a try that was right is given back, and its time stays", func(t *testing.T) {
		check(t, e.s.ReturnTry(e.ctx, key))
		count(t, time.Second, 1, time.Second)
		check(t, e.s.ReturnTry(e.ctx, key))
		check(t, e.s.ReturnTry(e.ctx, key))
		check(t, e.s.ReturnTry(e.ctx, randomHash()))
		count(t, time.Second, 0, 0)
		take(t, 2*time.Second, 0, nil)
		count(t, 2*time.Second, 1, 2*time.Second)
	})
	t.Run("PE-05 tries are counted within the window of the first", func(t *testing.T) {
		take(t, window-time.Millisecond, 1, nil)
		take(t, window, 2, storage.ErrChanged)
		take(t, window, 0, nil)
		count(t, window, 1, window)
	})
}

// hostileText checks that text which a database cannot store is treated as unknown.
func hostileText(t *testing.T, e *env) {
	for _, text := range []string{"nul\x00byte", "\xff\xfe", "'; DROP TABLE clients; --", "%", ""} {
		_, err := e.s.Client(e.ctx, text)
		wantErr(t, err, storage.ErrNotFound)
		_, err = e.s.UserByName(e.ctx, text)
		wantErr(t, err, storage.ErrNotFound)
		a := e.approved(t)
		r := e.redemption(a)
		r.ClientID = text
		if _, err = e.s.RedeemCode(e.ctx, r); !errors.Is(err, storage.ErrMismatch) &&
			!errors.Is(err, storage.ErrNotFound) {
			t.Errorf("client %q: got %v, want ErrMismatch or ErrNotFound", text, err)
		}
		if _, err = e.s.RedeemCode(e.ctx, e.redemption(a)); err != nil {
			t.Errorf("after client %q: %v", text, err)
		}
	}
}
