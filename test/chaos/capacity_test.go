//go:build capacity

package chaos

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var (
	perSecond = flag.Int("rate", 1600, "how many tokens a second the replicas of TestCapacity issue together")
	lasting   = flag.Duration("lasts", time.Minute, "how long each load of TestCapacity lasts")
	delayed   = flag.Duration("delay", 2*time.Millisecond, "the way from replicas to PostgreSQL, and back, each")
)

// TestCapacity measures what docs/capacity.md says about three replicas on one PostgreSQL. It prints
// each figure, and fails if an entry of the audit log is lost or a request fails (OP-01). It
// loads the machine for minutes, so only "make capacity" runs it.
func TestCapacity(t *testing.T) {
	t.Run("audit", func(t *testing.T) { auditKeepsUp(t, "audit: {detail: full}\n", *perSecond) })
	t.Run("required", func(t *testing.T) { auditKeepsUp(t, "audit: {required: true}\n", *perSecond/2) })
}

// startCapacity starts replicas on one PostgreSQL behind a network with a delay. configuration is
// added to theirs.
func startCapacity(t *testing.T, configuration string) (*cluster, *pgtest.Server) {
	var database *pgtest.Server
	c := newCluster(t, grace, func(*cluster) string {
		database = pgtest.StartOwn(t, "track_commit_timestamp=on")
		away := newValve(t, database.Host())
		away.delay = *delayed
		return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", away.Addr())
	})
	yaml, err := os.ReadFile(c.config)
	if err == nil {
		err = os.WriteFile(c.config, append(yaml, configuration...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.start()
	return c, database
}

// auditKeepsUp issues tokens for a client's own credentials at all replicas. Each token must have
// an entry in the audit log.
func auditKeepsUp(t *testing.T, configuration string, rate int) {
	c, database := startCapacity(t, configuration)
	issued, took, failed := c.issue(rate, *lasting)
	if len(issued) == 0 {
		t.Fatal("no token was issued")
	}
	c.stop() // a replica records its entries before it ends
	conn, err := pgx.Connect(t.Context(), database.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(),
		"SELECT leaf::json->'fields'->>'jti' FROM audit_entries WHERE event = 'token.issued'")
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	lost, in := 0, map[string]bool{}
	for _, id := range recorded {
		in[id] = true
	}
	for _, token := range issued {
		claims, err := claimsOf(token)
		if err != nil {
			t.Fatal(err)
		}
		if !in[claims.TokenID] {
			lost++
		}
	}
	var waited float64 // milliseconds
	if err := conn.QueryRow(t.Context(), `SELECT
		max(extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000 - at)::float8
		FROM audit_entries WHERE event = 'token.issued'`).Scan(&waited); err != nil {
		t.Fatal(err)
	}
	slices.Sort(took)
	t.Logf("%d replicas, %s each way to PostgreSQL, %d tokens offered a second: %d issued (%.0f a second), %d failed, "+
		"p50 %s, p99 %s; %d audit entries lost, the oldest waited %.1f s", len(c.replicas), *delayed, rate, len(issued),
		float64(len(issued))/lasting.Seconds(), failed, percentile(took, 50), percentile(took, 99), lost, waited/1000)
	if lost > 0 || failed > 0 {
		t.Errorf("%d audit entries were lost, and %d requests failed", lost, failed)
	}
}

// issue gets tokens for a client's own credentials, at a rate, from all replicas in turn. It returns
// the tokens, how long each answer took, and how many requests got none.
func (c *cluster) issue(rate int, lasts time.Duration) (tokens []string, took []time.Duration, failed int64) {
	const workers = 96
	var mu sync.Mutex // guards tokens and took
	var wg sync.WaitGroup
	var next, failures atomic.Int64
	form := form("/token", url.Values{"grant_type": {"client_credentials"}})
	form.basic = resourceServer
	began := time.Now()
	for range workers {
		wg.Go(func() {
			for {
				n := next.Add(1) - 1
				due := time.Duration(n) * time.Second / time.Duration(rate)
				if due >= lasts || time.Since(began) > 2*lasts { // a machine that is too slow offers less
					return
				}
				pause(time.Until(began.Add(due)))
				asked := time.Now()
				a, _, err := c.attempt(context.Background(), form, c.replicas[n%int64(len(c.replicas))])
				var out oauth.TokenResponse
				if err == nil && a.status == http.StatusOK {
					err = json.Unmarshal(a.body, &out)
				}
				mu.Lock()
				if took = append(took, time.Since(asked)); out.AccessToken != "" && err == nil {
					tokens = append(tokens, out.AccessToken)
				} else {
					failures.Add(1)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return tokens, took, failures.Load()
}

func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[min(len(sorted)-1, len(sorted)*p/100)].Round(100 * time.Microsecond)
}
