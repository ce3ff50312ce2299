package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// replica is a server, alone or one of several on one PostgreSQL.
type replica struct {
	binary, address string

	log  logtest.Buffer // of all runs
	stop func()         // ends it with SIGTERM
	kill func()         // ends it with SIGKILL, like a power failure
}

// startReplica starts a replica of this version.
func startReplica(t *testing.T, config, address string) *replica {
	t.Helper()
	r := &replica{binary: program.Authd(t), address: address}
	r.start(t, config)
	return r
}

// start starts a replica and waits until it is ready. It ends with the test, or through stop or
// kill.
func (r *replica) start(t *testing.T, config string) (stop func()) {
	t.Helper()
	cmd := exec.Command(r.binary, "serve", "--config", config)
	cmd.Env = append(os.Environ(), "MCP_AUTHD_LISTEN="+r.address, "MCP_AUTHD_MANAGEMENT_LISTEN=")
	cmd.Stderr = &r.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	r.kill = func() {
		once.Do(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // being killed is not an error
		})
	}
	stop = func() {
		once.Do(func() {
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended; Wait returns the error
			if err := cmd.Wait(); err != nil {
				t.Errorf("a replica did not exit with 0: %v\n%s", err, r.log.String())
			}
		})
	}
	r.stop = stop
	t.Cleanup(stop)
	demotest.Ready(t, r.at(""), &r.log)
	return stop
}

func (r *replica) at(path string) string { return "http://" + r.address + path }

// TestReplicas starts two servers concurrently on an empty PostgreSQL. Each flow that begins at one
// is finished at the other.
func TestReplicas(t *testing.T) {
	database := pgtest.Start(t).Database(t)
	first, second := nettest.For(t), nettest.For(t)
	issuer := "http://" + first
	config := filepath.Join(t.TempDir(), "mcp-authd.yaml")
	yaml := "issuer: " + issuer + "\ndata_dir: " + t.TempDir() + "\nsecret_key: " + strings.Repeat("k", 40) +
		"\ndatabase: {url: \"" + database + "\"}\n" +
		"resources: [{uri: \"http://127.0.0.1:9/mcp\", name: R, scopes: [{name: mcp, description: use it, default: true}]}]\n"
	if err := os.WriteFile(config, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	add := exec.Command(program.Authd(t), "user", "add", "alice", "--password-stdin", "--config", config)
	add.Stdin = strings.NewReader("correct horse battery")
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	startReplica(t, config, first)
	startReplica(t, config, second)

	d := &demotest.Demo{Issuer: issuer, MCPURL: "http://127.0.0.1:9/mcp"}
	id := register(t, d)
	back, err := demotest.NewPerson("alice",
		"correct horse battery").Visit(issuer + "/authorize?" + authorizeQuery(t, d, id).Encode())
	if err != nil {
		t.Fatal(err)
	}
	exchange := url.Values{
		"grant_type": {"authorization_code"}, "client_id": {id}, "code": {back.Query().Get("code")},
		"code_verifier": {verifier},
	}
	status, tokens := post(t, "http://"+second+"/token", exchange)
	t.Run("AS-49 a code of one replica is redeemed at the other, once", func(t *testing.T) {
		if status != http.StatusOK {
			t.Fatalf("got %d %v", status, tokens)
		}
	})
	refresh := url.Values{
		"grant_type": {"refresh_token"}, "client_id": {id}, "refresh_token": {tokens["refresh_token"].(string)},
	}
	t.Run("AS-96 the same refresh token at both gives the same reply", func(t *testing.T) {
		_, a := post(t, "http://"+first+"/token", refresh)
		_, b := post(t, "http://"+second+"/token", refresh)
		if a["refresh_token"] == nil || a["refresh_token"] != b["refresh_token"] ||
			a["access_token"] != b["access_token"] {
			t.Errorf("got %v and %v", a, b)
		}
	})
	t.Run("OB-01 what was asked at both is one attempt", func(t *testing.T) {
		var found []struct {
			Reference string
			OK        bool
		}
		wait.Success(t, "there is one attempt, which succeeded", func() error {
			list := exec.Command(program.Authd(t), "attempt", "list", "--json", "--config", config)
			if out, err := list.Output(); err != nil || json.Unmarshal(out, &found) != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if len(found) != 1 || !found[0].OK {
				return fmt.Errorf("got %+v", found)
			}
			return nil
		})
		out, err := exec.Command(program.Authd(t), "attempt", "show", found[0].Reference, "--config",
			config).CombinedOutput()
		shown := string(out)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		at := -1
		for _, step := range []string{"  registration  ", "  authorize  ", "  signin  ", "  consent  ", "  token  "} {
			i := strings.Index(shown, step)
			if i < at || i < 0 {
				t.Errorf("no %s in its place: %s", step, shown)
			}
			at = i
		}
	})
	t.Run("AS-32 both sign with one key", func(t *testing.T) {
		var sets [2]string
		for i, address := range []string{first, second} {
			resp, err := http.Get("http://" + address + "/jwks.json")
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			b.ReadFrom(resp.Body)
			resp.Body.Close()
			sets[i] = b.String()
		}
		if sets[0] != sets[1] || !strings.Contains(sets[0], "ES256") {
			t.Errorf("got %s and %s", sets[0], sets[1])
		}
	})
}

// TestReplicasAreListed: OB-10. Replicas are listed while they run, and a killed one is reported.
func TestReplicasAreListed(t *testing.T) {
	database := pgtest.Start(t).Database(t)
	config := filepath.Join(t.TempDir(), "mcp-authd.yaml")
	addresses := []string{nettest.For(t), nettest.For(t), nettest.For(t)}
	yaml := "issuer: http://" + addresses[0] + "\ndata_dir: " + t.TempDir() + "\nsecret_key: " +
		strings.Repeat("k", 40) + "\ndatabase: {url: \"" + database + "\"}\n"
	if err := os.WriteFile(config, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	var replicas []*replica
	for _, address := range addresses {
		replicas = append(replicas, startReplica(t, config, address))
	}
	type health struct {
		Replicas []struct{ ID, State, Address, Version string }
		Findings []struct{ Check, Level, What string }
	}
	look := func() (h health, state map[string]string) {
		t.Helper()
		out, err := exec.Command(program.Authd(t), "health", "show", "--json", "--config", config).Output()
		if err != nil || json.Unmarshal(out, &h) != nil {
			t.Fatalf("%v: %s", err, out)
		}
		state = map[string]string{}
		for _, r := range h.Replicas {
			state[r.Address] = r.State
		}
		return h, state
	}
	until := func(what string, is func(h health, state map[string]string) bool) {
		t.Helper()
		wait.Success(t, what, func() error {
			h, state := look()
			if !is(h, state) {
				return fmt.Errorf("OB-10: got %+v", h)
			}
			return nil
		})
	}
	finds := func(h health, level, what string) bool {
		for _, f := range h.Findings {
			if f.Check == "replicas" && f.Level == level && strings.Contains(f.What, what) {
				return true
			}
		}
		return false
	}
	until("three replicas run", func(h health, state map[string]string) bool {
		for _, a := range addresses {
			if state[a] != "running" {
				return false
			}
		}
		return finds(h, "ok", "3 replicas run, all of version ")
	})
	replicas[1].kill()
	replicas[2].stop()
	if _, state := look(); state[addresses[2]] != "" || state[addresses[0]] != "running" {
		t.Errorf("OB-10: one has stopped: got %v", state)
	}
	// A replica counts as lost after a minute without a heartbeat.
	db, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	_, err = db.Exec(t.Context(), "UPDATE replicas SET seen_at = seen_at - 61000 WHERE address = $1", addresses[1])
	if err != nil {
		t.Fatal(err)
	}
	until("the killed replica counts as lost", func(h health, state map[string]string) bool {
		return state[addresses[1]] == "lost" && finds(h, "warning", "1 replica was lost within the last hour: ")
	})
	out, err := exec.Command(program.Authd(t), "doctor", "--config", config).CombinedOutput()
	if !strings.Contains(string(out), "1 replica was lost within the last hour: ") {
		t.Errorf("OB-10: doctor: %v: %s", err, out)
	}
}
