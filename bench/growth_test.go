//go:build unix

package bench

import (
	"context"
	"encoding/json"
	"flag"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

var carriedOut = flag.Int("operations", 5_000, "how many operations of each kind BenchmarkGrowth carries out")

// signInsEach is how many sign-ins of a user's client BenchmarkGrowth makes. More than 64 would replace the first ones.
const signInsEach = 50

// BenchmarkGrowth reports the bytes that each operation leaves in the database with its audit entries (OP-02). Sixteen
// grants carry out refreshes and calls. A sign-in is a whole one: a browser with a session gets the consent page, and
// the client, which registered itself, redeems the code. With -v it lists the tables and indexes that a sign-in fills.
// On PostgreSQL they include replaced rows that a vacuum gives back.
func BenchmarkGrowth(b *testing.B) {
	for _, s := range measured {
		for _, full := range []bool{false, true} {
			detail := map[bool]string{false: "standard", true: "full"}[full]
			b.Run("store="+s.name+"/detail="+detail, func(b *testing.B) {
				store, sizes := s.open(b)
				benchGrowth(b, store, sizes, full)
			})
		}
	}
}

// measured opens each store with a function that returns the size of each table and index.
var measured = []struct {
	name string
	open func(b *testing.B) (storage.Store, func() map[string]int64)
}{
	{"sqlite", func(b *testing.B) (storage.Store, func() map[string]int64) {
		path := filepath.Join(b.TempDir(), "bench.db")
		s, err := sqlite.Open(b.Context(), path, sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return s, func() map[string]int64 { return sqliteSizes(b, path) }
	}},
	{"postgres", func(b *testing.B) (storage.Store, func() map[string]int64) {
		url := pgtest.Start(b).Database(b)
		s, err := postgres.Open(b.Context(), url, postgres.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return s, func() map[string]int64 { return postgresSizes(b, url) }
	}},
}

// current is the audit log that events go to now.
type current struct{ *auditlog.Writer }

func benchGrowth(b *testing.B, store storage.Store, sizes func() map[string]int64, full bool) {
	b.Cleanup(func() { store.Close() })
	log := &current{newWriter(b, store, full)}
	recorder := audit.New(discarded).Into(log)
	r := newRigRecorded(b, store, nil, authserver.DPoPPolicy{}, recorder, registering(b, store))
	var tokens [16]string
	for i := range tokens {
		tokens[i] = r.redeem(b, r.approve(b)).RefreshToken
	}
	for _, kind := range []struct {
		unit string
		each func(i int)
	}{
		{"B/refresh", func(i int) {
			token := &tokens[i%len(tokens)]
			*token = r.refresh(b, *token).RefreshToken
		}},
		{"B/machine-token", func(int) { r.post(b, "/token", url.Values{"grant_type": {"client_credentials"}}, true) }},
		{"B/call", func(int) { callTool(b.Context(), recorder) }},
	} {
		log.carriedOut(b, store, full, kind.unit, *carriedOut, kind.each)
	}
	people := make([]*newcomer, (*carriedOut+signInsEach-1)/signInsEach)
	for i := range people {
		people[i] = r.newcomer(b, "person-"+strconv.Itoa(i))
		people[i].signIn(b)
	}
	settled(b, store, log)
	log.Writer = newWriter(b, store, full)
	before := sizes()
	for i := range *carriedOut {
		people[i%len(people)].signIn(b)
	}
	settled(b, store, log)
	reportKept(b, before, sizes())
}

// reportKept reports what sign-ins leave in the tables of grants and of the audit log. Other tables lose their rows
// within minutes, such as those of used forms. With -v it lists each table and index.
func reportKept(b *testing.B, before, after map[string]int64) {
	var kept float64
	for _, name := range slices.Sorted(maps.Keys(after)) {
		grown := float64(after[name]-before[name]) / float64(*carriedOut)
		name = strings.TrimPrefix(name, "sqlite_autoindex_")
		if strings.HasPrefix(name, "audit_") || strings.HasPrefix(name, "grants") {
			kept += grown
			b.Logf("%-36s %7.1f", name, grown)
		}
	}
	b.ReportMetric(kept, "B/sign-in")
}

// carriedOut reports the bytes that each of n operations leaves.
func (l *current) carriedOut(b *testing.B, store storage.Store, full bool, unit string, n int, each func(i int)) {
	before := settled(b, store, l)
	l.Writer = newWriter(b, store, full)
	for i := range n {
		each(i)
	}
	b.ReportMetric(float64(settled(b, store, l)-before)/float64(n), unit)
}

// registering lets clients register themselves.
func registering(b *testing.B, store storage.Store) func(*authserver.Config) {
	return func(c *authserver.Config) {
		registry, err := dcr.New(dcr.Config{
			Store: store, SecretKeys: c.SecretKeys, Limits: dcr.Limits{PerMinute: 1e6, Burst: 1e6},
		})
		if err != nil {
			b.Fatal(err)
		}
		c.Registry = registry
	}
}

// newcomer is a user in a browser with a session, and their client, which registered itself.
type newcomer struct {
	browser
	client string
}

func (r *rig) newcomer(b *testing.B, name string) *newcomer {
	if _, err := r.server.Users().Create(b.Context(), name, "bench-password", false); err != nil {
		b.Fatal(err)
	}
	body := `{"client_name":"An application","redirect_uris":["` + redirect + `"],` +
		`"grant_types":["authorization_code","refresh_token"],"token_endpoint_auth_method":"none"}`
	w, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, issuer+"/register", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	r.ServeHTTP(w, req)
	var client struct {
		ID string `json:"client_id"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &client); err != nil || client.ID == "" {
		b.Fatalf("register: status %d: %s", w.Code, w.Body)
	}
	n := &newcomer{browser{r, map[string]string{}}, client.ID}
	page := n.ask(b, "").Body.String()
	n.submit(b, page, "/login", url.Values{"username": {name}, "password": {"bench-password"}})
	return n
}

func (n *newcomer) ask(b *testing.B, prompt string) *httptest.ResponseRecorder {
	asked := asking(n.client)
	asked.Set("prompt", prompt)
	return n.send(b, http.MethodGet, issuer+"/authorize?"+asked.Encode(), nil)
}

// signIn lets the user approve the client on the consent page. The client redeems the code.
func (n *newcomer) signIn(b *testing.B) {
	w := n.submit(b, n.ask(b, "consent").Body.String(), "/consent", url.Values{"decision": {"approve"}})
	back, err := url.Parse(w.Header().Get("Location"))
	if err != nil {
		b.Fatal(err)
	}
	n.redeemFor(b, n.client, back.Query().Get("code"))
}

// settled returns the size of the database when the log has taken all events.
func settled(b *testing.B, store storage.Store, log *current) int64 {
	b.Helper()
	ended, end := context.WithCancel(b.Context())
	end()
	log.Run(ended)
	size, err := store.Size(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return size.Used
}
