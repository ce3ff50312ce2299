package bench

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var connected = flag.Int("connected", 10_000,
	"how many applications the person of BenchmarkAccount has connected at last")

// BenchmarkAccount measures the account page of a user with few or many connected applications.
// Each application has called a tool.
func BenchmarkAccount(b *testing.B) {
	for _, s := range stores {
		b.Run("store="+s.name, func(b *testing.B) {
			r := newRig(b, s.open(b))
			br := r.signedIn(b)
			have := 0
			for _, n := range []int{10, *connected} {
				r.connect(b, have, n)
				have = n
				b.Run(fmt.Sprintf("connected=%d", n), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						br.send(b, http.MethodGet, issuer+"/account", nil)
					}
				})
			}
		})
	}
}

// connect connects up to n applications of the user, with eight concurrent callers.
func (r *rig) connect(b *testing.B, have, n int) {
	b.Helper()
	var callers sync.WaitGroup
	for first := range 8 {
		callers.Go(func() {
			for i := have + first; i < n; i += 8 {
				if err := r.connectOnce(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
}

func (r *rig) connectOnce(i int) error {
	ctx, id, now := context.Background(), secrets.ID(""), time.Now()
	code := secrets.Token("mcpac_" + id)
	client := storage.Client{
		ID: secrets.ID("mcp_"), Name: fmt.Sprint("Application ", i), RedirectURIs: []string{redirect},
		GrantTypes: []string{"authorization_code", "refresh_token"}, AuthMethod: "none",
		Source: storage.SourceDynamic, CreatedAt: now,
	}
	err := r.store.Approve(ctx, storage.Approval{
		Session: r.session, Client: &client, Now: now,
		Grant: storage.Grant{
			ID: "grt_" + id, ClientID: client.ID, UserID: r.user, Scopes: oauth.Scopes{"mcp"}, Resource: resource,
			AuthTime: now, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
		},
		Code: storage.Code{
			Hash: secrets.Hash(code), RedirectURI: redirect, Challenge: oauth.ChallengeS256(verifier),
			ExpiresAt: now.Add(time.Minute),
		},
	})
	if err != nil {
		return err
	}
	_, err = r.store.RedeemCode(ctx, storage.RedeemCode{
		Hash: secrets.Hash(code), GrantID: "grt_" + id, ClientID: client.ID, Challenge: oauth.ChallengeS256(verifier),
		RedirectURI: redirect, Resource: resource, Now: now,
		Refresh: &storage.Refresh{
			Hash: secrets.Hash(secrets.Token("")), Secret: secrets.Hash(secrets.Token("")),
			ExpiresAt: now.Add(time.Hour),
		},
	})
	if err != nil {
		return err
	}
	return r.store.NoteCalls(ctx, map[string]storage.ToolCall{"grt_" + id: {Tool: "search", At: now}})
}
