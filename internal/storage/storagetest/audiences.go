package storagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func (e *env) audience(issuer string) storage.Audience {
	return storage.Audience{
		Issuer:    issuer,
		Resources: []string{"https://mcp.example.com/mcp"},
		Scopes:    oauth.Scopes{"read", "write"},
		Clients:   []storage.AudienceClient{{ID: "app", There: "app-there"}},
		Mail:      true,
		MaxAge:    storage.Age(time.Hour),
		CreatedAt: e.now,
	}
}

func audiences(t *testing.T, e *env) {
	list := func(want ...storage.Audience) {
		t.Helper()
		got, err := e.s.ListAudiences(e.ctx)
		check(t, err)
		same(t, got, want)
	}
	list()
	b, a := e.audience("https://b.example"), e.audience("https://a.example")
	a.Mail, a.MaxAge = false, 0
	check(t, e.s.AddAudience(e.ctx, b))
	check(t, e.s.AddAudience(e.ctx, a))
	again := e.audience(a.Issuer)
	wantErr(t, e.s.AddAudience(e.ctx, again), storage.ErrExists)
	list(a, b)
	check(t, e.s.RemoveAudience(e.ctx, a.Issuer))
	wantErr(t, e.s.RemoveAudience(e.ctx, a.Issuer), storage.ErrNotFound)
	list(b)
}

// raceAddAudience adds one audience 32 times; one call succeeds.
func raceAddAudience(t *testing.T, e *env) {
	var c tally
	compete(func(i int) {
		a := e.audience("https://a.example")
		a.Clients[0].There = fmt.Sprint(i)
		c.add(e.s.AddAudience(e.ctx, a), storage.ErrExists)
	})
	c.want(t, 1)
}
