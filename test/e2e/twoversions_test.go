package e2e

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// firstStep was added by this version. The previous version is the commit before that addition.
const firstStep = "migrations/postgres/0017_ways.sql"

// earlierBinary builds the previous version from the history of this repository.
func earlierBinary(t *testing.T) string {
	t.Helper()
	git := func(args ...string) ([]byte, error) {
		cmd := exec.Command("git", args...)
		cmd.Dir = "../.."
		return cmd.Output()
	}
	if shallow, err := git("rev-parse", "--is-shallow-repository"); err != nil || string(shallow) != "false\n" {
		t.Skipf("the version before is not here: a whole clone of the repository has it (%v)", err)
	}
	added, err := git("log", "--diff-filter=A", "--format=%H", "--", firstStep)
	commits := strings.Fields(string(added))
	if err != nil || len(commits) == 0 {
		t.Fatalf("which commit added %s: %v", firstStep, err)
	}
	source, err := git("archive", commits[len(commits)-1]+"^")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	unpack := exec.Command("tar", "-x", "-C", dir)
	unpack.Stdin = bytes.NewReader(source)
	build := exec.Command("go", "build", "-o", "earlier", "./cmd/mcp-authd") // shares packages with this version
	build.Dir = dir
	for _, cmd := range []*exec.Cmd{unpack, build} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
	}
	return filepath.Join(dir, "earlier")
}

// versions is two replicas, one of the previous version and one of this version, on one database.
// The test selects the replica that the load balancer uses.
type versions struct {
	*demotest.Demo
	t      *testing.T
	config string
	ask    atomic.Pointer[replica]
	old    *replica
	this   *replica
}

const twoVersionsConfig = `issuer: ISSUER
data_dir: DIR
secret_key: kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk
database: {url: "DATABASE"}
resources: [{uri: "RESOURCE", name: R, scopes: [{name: mcp, description: use it, default: true}]}]
clients: [{id: rs, name: RS, secret: ssssssssssssssssssssssssssssssssssssssss,
  auth_method: client_secret_basic, grant_types: [client_credentials], resources: ["RESOURCE"]}]
registration: {rate_per_minute: 1000000}
`

func newVersions(t *testing.T) *versions {
	dir := t.TempDir()
	v := &versions{
		t: t, Demo: &demotest.Demo{MCPURL: "http://127.0.0.1:9/mcp"}, config: filepath.Join(dir, "mcp-authd.yaml"),
		old:  &replica{binary: earlierBinary(t), address: nettest.For(t)},
		this: &replica{binary: program.Authd(t), address: nettest.For(t)},
	}
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: v.ask.Load().address})
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(front.Close)
	v.Issuer = front.URL
	yaml := strings.NewReplacer("ISSUER", v.Issuer, "DIR", dir, "DATABASE", pgtest.Start(t).Database(t),
		"RESOURCE", v.MCPURL).Replace(twoVersionsConfig)
	if err := os.WriteFile(v.config, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return v
}

// command runs a command of one version on the installation.
func (v *versions) command(of *replica, in string, args ...string) string {
	v.t.Helper()
	cmd := exec.Command(of.binary, append(args, "--config", v.config)...)
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err != nil {
		v.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// connection is an application that a user has connected.
type connection struct {
	client          string
	access, refresh string
}

// connect makes a user approve an application at one version. The application redeems its code at
// another version.
func (v *versions) connect(approves, redeems *replica, p *demotest.Person) *connection {
	v.t.Helper()
	v.ask.Store(approves)
	c := &connection{client: register(v.t, v.Demo)}
	back, err := p.Visit(v.Issuer + "/authorize?" + authorizeQuery(v.t, v.Demo, c.client).Encode())
	if err != nil {
		v.t.Fatal(err)
	}
	status, out := post(v.t, redeems.at("/token"), url.Values{
		"grant_type": {"authorization_code"}, "client_id": {c.client}, "code": {back.Query().Get("code")},
		"code_verifier": {verifier}, "redirect_uri": {redirect},
	})
	if status != http.StatusOK {
		v.t.Fatalf("a code of %s at %s: %d %v", approves.address, redeems.address, status, out)
	}
	c.take(out)
	return c
}

func (c *connection) take(out map[string]any) {
	c.access, _ = out["access_token"].(string)
	c.refresh, _ = out["refresh_token"].(string)
}

// renew refreshes at a version and returns the error in its response.
func (c *connection) renew(t *testing.T, at *replica) any {
	t.Helper()
	status, out := post(t, at.at("/token"), url.Values{
		"grant_type": {"refresh_token"}, "client_id": {c.client}, "refresh_token": {c.refresh},
	})
	if status == http.StatusOK {
		c.take(out)
		return nil
	}
	return out["error"]
}

// active introspects the access token at a version.
func (c *connection) active(t *testing.T, at *replica) bool {
	t.Helper()
	to, err := url.Parse(at.at("/introspect"))
	if err != nil {
		t.Fatal(err)
	}
	to.User = url.UserPassword("rs", strings.Repeat("s", 40))
	_, out := post(t, to.String(), url.Values{"token": {c.access}})
	return out["active"] == true
}

// wantDead checks that both versions refuse a connection.
func (v *versions) wantDead(t *testing.T, c *connection) {
	t.Helper()
	for _, at := range []*replica{v.old, v.this} {
		if got := c.renew(t, at); got != "invalid_grant" {
			t.Errorf("refreshed at %s: got %v, want invalid_grant", at.address, got)
		}
		if c.active(t, at) {
			t.Errorf("its access token is active at %s", at.address)
		}
	}
}

// asked reports whether a version asks a user for the password when a connected application sends
// them to it again.
func (v *versions) asked(t *testing.T, at *replica, p *demotest.Person, c *connection) bool {
	t.Helper()
	v.ask.Store(at)
	before := len(p.Pages)
	if _, err := p.Visit(v.Issuer + "/authorize?" + authorizeQuery(t, v.Demo, c.client).Encode()); err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(p.Pages[before:], func(page string) bool {
		return strings.Contains(page, `name="password"`)
	})
}

// TestTwoVersions: a replica of the previous version serves users and applications on PostgreSQL
// while one of this version starts and changes the schema. Each version accepts grants of the other
// and respects revocations by the other. docs/operating/updates.md lists the exceptions.
func TestTwoVersions(t *testing.T) {
	lane.Long(t, "internal/storage/postgres tests the steps between two versions")
	const password = "correct horse battery"
	v := newVersions(t)
	for _, name := range []string{"alice", "bob", "carol", "dan", "erin"} {
		v.command(v.old, password, "user", "add", name, "--password-stdin")
	}
	stopOld := v.old.start(t, v.config)
	alice, bob := demotest.NewPerson("alice", password), demotest.NewPerson("bob", password)
	earlier, busy := v.connect(v.old, v.old, alice), v.connect(v.old, v.old, bob)
	unredeemed, err := alice.Visit(v.Issuer + "/authorize?" + authorizeQuery(t, v.Demo, earlier.client).Encode())
	if err != nil {
		t.Fatal(err)
	}

	over := make(chan struct{})
	var load sync.WaitGroup
	load.Go(func() { // an application that does not wait for the upgrade
		for n := 0; ; n++ {
			select {
			case <-over:
				if n == 0 {
					t.Error("no token was refreshed during the upgrade")
				}
				return
			default:
			}
			if got := busy.renew(t, v.old); got != nil {
				t.Errorf("refreshed during the upgrade: %v", got)
				return
			}
		}
	})
	v.this.start(t, v.config)
	close(over)
	load.Wait()

	t.Run("AS-49 a code of the version before is redeemed at this one", func(t *testing.T) {
		status, out := post(t, v.this.at("/token"), url.Values{
			"grant_type": {"authorization_code"}, "client_id": {earlier.client},
			"code": {unredeemed.Query().Get("code")}, "code_verifier": {verifier}, "redirect_uri": {redirect},
		})
		if status != http.StatusOK {
			t.Errorf("got %d %v", status, out)
		}
	})
	t.Run("AS-49 a code of this version is redeemed at the one before", func(t *testing.T) {
		v.connect(v.this, v.old, alice)
	})
	t.Run("AS-96 a refresh token of each is taken by the other", func(t *testing.T) {
		later := v.connect(v.this, v.this, bob)
		for range 3 {
			for _, c := range []*connection{earlier, busy, later} {
				for _, at := range []*replica{v.old, v.this} {
					if got := c.renew(t, at); got != nil {
						t.Errorf("at %s: %v", at.address, got)
					}
					if !c.active(t, v.old) || !c.active(t, v.this) {
						t.Errorf("a token of %s is not active at both", at.address)
					}
				}
			}
		}
		twice := *later
		if a, b := later.renew(t, v.old), twice.renew(t, v.this); a != nil || b != nil || *later != twice {
			t.Errorf("one token at both: %v, %v", a, b)
		}
	})
	t.Run("AS-91 a browser session of each is one at the other", func(t *testing.T) {
		carol := demotest.NewPerson("carol", password)
		c := v.connect(v.this, v.this, carol)
		if v.asked(t, v.old, carol, c) {
			t.Error("the previous version asks for a password")
		}
		if v.asked(t, v.this, alice, earlier) {
			t.Error("this version asks for a password")
		}
	})
	t.Run("AS-226 what an application revokes at one is dead at the other", func(t *testing.T) {
		for _, at := range []*replica{v.old, v.this} {
			for _, by := range []*replica{v.old, v.this} {
				c := v.connect(by, by, alice)
				if status, out := post(t, at.at("/revoke"), url.Values{
					"client_id": {c.client}, "token": {c.refresh},
				}); status != http.StatusOK {
					t.Fatalf("got %d %v", status, out)
				}
				v.wantDead(t, c)
			}
		}
	})
	t.Run("PE-09 an application that is disconnected at this version is dead at the one before", func(t *testing.T) {
		carol := demotest.NewPerson("carol", password)
		c := v.connect(v.old, v.old, carol)
		v.ask.Store(v.this)
		grants, err := carol.Connected(v.Issuer)
		if err != nil || len(grants) == 0 {
			t.Fatalf("on the account page: %q, %v", grants, err)
		}
		if err := carol.Press(v.Issuer, grants[0], "disconnect"); err != nil {
			t.Fatal(err)
		}
		v.wantDead(t, c)
	})
	t.Run("PE-09 a pause holds again when the version before is gone", func(t *testing.T) {
		c := v.connect(v.old, v.old, demotest.NewPerson("erin", password))
		erin := demotest.NewPerson("erin", password)
		v.connect(v.this, v.this, erin)
		grants, err := erin.Connected(v.Issuer)
		if err != nil || len(grants) != 1 { // one per application
			t.Fatalf("on the account page: %q, %v", grants, err)
		}
		if err := erin.Press(v.Issuer, grants[0], "pause"); err != nil {
			t.Fatal(err)
		}
		if got := c.renew(t, v.old); got != nil {
			t.Errorf("the previous version knows no pause, and answers %v", got)
		}
		if c.renew(t, v.this) == nil || c.active(t, v.this) {
			t.Error("this version lets a paused application in")
		}
	})
	t.Run("AS-237 what an operator ends by the command of one is dead at both", func(t *testing.T) {
		for by, name := range map[*replica]string{v.old: "carol", v.this: "dan"} {
			p := demotest.NewPerson(name, password)
			var connected []*connection
			for _, at := range []*replica{v.old, v.this} {
				connected = append(connected, v.connect(at, at, p))
			}
			v.command(by, "", "user", "disable", name)
			for _, c := range connected {
				v.wantDead(t, c)
			}
			v.ask.Store(v.this)
			query := authorizeQuery(t, v.Demo, connected[0].client)
			if _, err := p.Visit(v.Issuer + "/authorize?" + query.Encode()); err == nil {
				t.Errorf("%s still signs in", name)
			}
			v.command(by, "", "user", "delete", name, "--yes")
		}
	})
	t.Run("the version before starts again on the schema of this one", func(t *testing.T) {
		stopOld()
		stop := v.old.start(t, v.config)
		if got := busy.renew(t, v.old); got != nil {
			t.Error(got)
		}
		stop()
	})
	t.Run("this version goes on alone", func(t *testing.T) {
		v.command(v.this, "", "migrate", "up", "--now")
		for _, c := range []*connection{earlier, busy} {
			if got := c.renew(t, v.this); got != nil || !c.active(t, v.this) {
				t.Errorf("got %v", got)
			}
		}
	})
}
