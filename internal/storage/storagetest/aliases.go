package storagetest

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// aliases checks that a resource has several URLs, and that each belongs to one resource only
// (AS-239).
func aliases(t *testing.T, e *env) {
	const mcp = "https://notes.example/mcp"
	const home, work = mcp + "@home", mcp + "@work"
	notes := storage.Resource{
		URI: mcp, Name: "Notes", Aliases: []string{home, work}, CreatedAt: e.now,
		Scopes: []storage.ScopeText{{Name: "mcp", Description: "use it", Default: true}}, DPoP: storage.DPoPRequired,
	}
	wantListed := func(t *testing.T, want ...storage.Resource) {
		t.Helper()
		got, err := e.s.ListResources(e.ctx)
		check(t, err)
		same(t, got, want)
	}
	grantAt := func(t *testing.T, uri string) storage.Approval {
		t.Helper()
		a := e.approval(e.person(t))
		a.Grant.Resource = uri
		check(t, e.s.Approve(e.ctx, a))
		return a
	}

	t.Run("it is listed with its aliases, once", func(t *testing.T) {
		check(t, e.s.AddResource(e.ctx, notes))
		wantListed(t, notes)
	})
	t.Run("an alias is taken, and so is the URL of a resource", func(t *testing.T) {
		for _, r := range []storage.Resource{
			{URI: home, CreatedAt: e.now},
			{
				URI: "https://notes.example/other", CreatedAt: e.now,
				Aliases: []string{"https://notes.example/free", work},
			},
			{URI: "https://notes.example/other", Aliases: []string{mcp}, CreatedAt: e.now},
		} {
			wantErr(t, e.s.AddResource(e.ctx, r), storage.ErrExists)
		}
		wantListed(t, notes) // no alias was added
	})
	files := storage.Resource{URI: "https://files.example/mcp", Name: "Files", CreatedAt: e.now.Add(time.Second)}
	t.Run("so it is when a resource is changed, and then nothing is", func(t *testing.T) {
		check(t, e.s.AddResource(e.ctx, files))
		changed := files
		changed.Name, changed.Aliases = "Other", []string{"https://files.example/free", work}
		wantErr(t, e.s.ReplaceResource(e.ctx, changed, e.now), storage.ErrExists)
		wantListed(t, notes, files)
	})
	t.Run("an alias is no resource that can be changed or removed by itself", func(t *testing.T) {
		wantErr(t, e.s.ReplaceResource(e.ctx, storage.Resource{URI: home, Name: "Home"}, e.now), storage.ErrNotFound)
		wantErr(t, e.s.RemoveResource(e.ctx, home, e.now), storage.ErrNotFound)
		wantListed(t, notes, files)
	})
	t.Run("an alias that is left out ends its grants, and no others", func(t *testing.T) {
		atHome, atWork, atMCP := grantAt(t, home), grantAt(t, work), grantAt(t, mcp)
		notes.Name, notes.Aliases = "All notes", []string{work, "https://notes.example/mcp@yard"}
		notes.DPoP = storage.DPoPRequired // AS-213: its tokens must be bound
		check(t, e.s.ReplaceResource(e.ctx, notes, e.now))
		wantListed(t, notes, files)
		e.wantLive(t, atHome, false)
		e.wantLive(t, atWork, true)
		e.wantLive(t, atMCP, true)
	})
	t.Run("it is free then, and good again when it is added again", func(t *testing.T) {
		files.Aliases, notes.DPoP = []string{home}, storage.DPoPOptional
		check(t, e.s.ReplaceResource(e.ctx, notes, e.now))
		check(t, e.s.ReplaceResource(e.ctx, files, e.now))
		wantListed(t, notes, files)
		e.wantLive(t, grantAt(t, home), true)
	})
	t.Run("removing it removes its aliases, and ends the grants of all", func(t *testing.T) {
		atWork, atMCP, other := grantAt(t, work), grantAt(t, mcp), grantAt(t, home)
		check(t, e.s.RemoveResource(e.ctx, mcp, e.now))
		wantListed(t, files)
		e.wantLive(t, atWork, false)
		e.wantLive(t, atMCP, false)
		e.wantLive(t, other, true)
		check(t, e.s.AddResource(e.ctx, storage.Resource{URI: work, Name: "Work", CreatedAt: e.now.Add(time.Hour)}))
	})
}

// raceAlias: one of 32 resources that want the same alias, half of them new, gets it.
func raceAlias(t *testing.T, e *env) {
	const alias = "https://notes.example/shared"
	resource := func(i int) storage.Resource {
		return storage.Resource{URI: "https://notes.example/" + strconv.Itoa(i), CreatedAt: e.now}
	}
	for i := 0; i < racers; i += 2 {
		check(t, e.s.AddResource(e.ctx, resource(i)))
	}
	var c tally
	compete(func(i int) {
		r := resource(i)
		r.Aliases = []string{alias}
		if i%2 == 0 {
			c.add(e.s.ReplaceResource(e.ctx, r, e.now), storage.ErrExists)
			return
		}
		c.add(e.s.AddResource(e.ctx, r), storage.ErrExists)
	})
	c.want(t, 1)
	all, err := e.s.ListResources(e.ctx)
	check(t, err)
	if n := len(slices.DeleteFunc(all, func(r storage.Resource) bool { return len(r.Aliases) == 0 })); n != 1 {
		t.Errorf("%d resources have the alias", n)
	}
}

// raceRemoveAlias removes a resource while aliases are added to it. No alias may remain.
func raceRemoveAlias(t *testing.T, e *env) {
	r := storage.Resource{URI: "https://notes.example/mcp", CreatedAt: e.now}
	check(t, e.s.AddResource(e.ctx, r))
	var c tally
	compete(func(i int) {
		if i == racers/2 {
			c.add(e.s.RemoveResource(e.ctx, r.URI, e.now))
			return
		}
		with := r
		with.Aliases = []string{r.URI + "@" + strconv.Itoa(i)}
		if err := e.s.ReplaceResource(e.ctx, with, e.now); err != nil {
			c.add(err, storage.ErrNotFound)
		}
	})
	c.want(t, 1)
	all, err := e.s.ListResources(e.ctx)
	check(t, err)
	if len(all) > 0 {
		t.Errorf("left: %+v", all)
	}
	for i := range racers {
		check(t, e.s.AddResource(e.ctx, storage.Resource{URI: r.URI + "@" + strconv.Itoa(i), CreatedAt: e.now}))
	}
}
