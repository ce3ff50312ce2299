package admin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestReplicas checks that running servers are listed and incompatible ones reported (OB-10).
func TestReplicas(t *testing.T) {
	now := time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC)
	replica := func(id string, changes ...func(*storage.Replica)) storage.Replica {
		r := storage.Replica{
			ID:        id,
			Name:      id,
			Version:   "1.2.0",
			Migration: 9999,
			Issuer:    "https://auth.example",
			Address:   "10.0.0.1:8414",
			StartedAt: now.Add(-3 * time.Hour),
			SeenAt:    now.Add(-time.Second),
		}
		for _, change := range changes {
			change(&r)
		}
		return r
	}
	seen := func(ago time.Duration) func(*storage.Replica) {
		return func(r *storage.Replica) { r.SeenAt = now.Add(-ago) }
	}
	look := func(name, level, says string, replicas ...storage.Replica) {
		t.Run("OB-10: "+name, func(t *testing.T) {
			s := newService(t, now)
			for _, r := range replicas {
				if err := s.Store.SeeReplica(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			f, err := s.ReplicaFindings(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(f) != 1 || f[0].Level != level || !strings.Contains(f[0].What, says) {
				t.Errorf("got %+v, want one %s with %q", f, level, says)
			}
		})
	}
	a, b := replica("a"), replica("b")
	look("none", admin.LevelSkipped, "no server of this database tells that it runs")
	look("one", admin.LevelOK, "1 server runs: a (10.0.0.1:8414), version 1.2.0", a)
	look("two of one version", admin.LevelOK, "2 replicas run, all of version 1.2.0", a, b)
	look("seen a minute ago", admin.LevelOK, "1 server runs", replica("a", seen(time.Minute)))
	look("lost", admin.LevelWarning,
		"1 replica was lost within the last hour: b (10.0.0.1:8414), last seen at 2026-11-23T17:58:00Z", a,
		replica("b", seen(2*time.Minute)))
	look("lost long ago, and of another version", admin.LevelOK, "1 server runs", a,
		replica("b", seen(61*time.Minute), func(r *storage.Replica) { r.Version = "1.1.0" }))
	look("lost and back", admin.LevelWarning, "17:55:00Z, has been started again", replica("a", seen(5*time.Minute)),
		replica("b", func(r *storage.Replica) { r.Name, r.StartedAt = "a", now.Add(-4*time.Minute) }))
	look("versions", admin.LevelWarning, "different versions: 1.2.0: a (10.0.0.1:8414); 1.3.0: b (10.0.0.1:8414)", a,
		replica("b", func(r *storage.Replica) { r.Version = "1.3.0" }))
	look("steps", admin.LevelWarning, "do not know all of its steps: up to 47: b (10.0.0.1:8414)", a,
		replica("b", func(r *storage.Replica) { r.Migration = 47 }))
	look("issuers", admin.LevelWarning, "issuers: https://auth.example: a (10.0.0.1:8414); https://other.example: b", a,
		replica("b", func(r *storage.Replica) { r.Issuer = "https://other.example" }))
	peer := func(at, unreached string) func(*storage.Replica) {
		return func(r *storage.Replica) { r.PeerAddress, r.Unreached = at, unreached }
	}
	look("RU-08 peers", admin.LevelOK, "2 replicas run", replica("a", peer("10.0.0.1:9415", "")),
		replica("b", peer("10.0.0.2:9415", "")))
	look("RU-08 one does not reach the other", admin.LevelWarning,
		"a (10.0.0.1:8414) does not reach b (10.0.0.1:8414) at 10.0.0.2:9415: connection refused",
		replica("a", peer("10.0.0.1:9415", "x gone\nb connection refused")), replica("b", peer("10.0.0.2:9415", "")))
	look("RU-08 one that has ended is not missed", admin.LevelOK, "1 server runs",
		replica("a", peer("10.0.0.1:9415", "b connection refused")))
	look("RU-08 one takes no requests", admin.LevelWarning, "take no requests from others: b (10.0.0.1:8414)",
		replica("a", peer("10.0.0.1:9415", "")), b)
	look("clocks", admin.LevelWarning, "the clock of replica a (10.0.0.1:8414) and that of the database differ by 7s",
		replica("a", func(r *storage.Replica) { r.Skew = -7 * time.Second }))
}

// TestManyReplicas checks that a finding names only a few replicas.
func TestManyReplicas(t *testing.T) {
	now := time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC)
	s := newService(t, now)
	for _, id := range strings.Split("abcdefgh", "") {
		r := storage.Replica{ID: id, Name: id, SeenAt: now}
		if err := s.Store.SeeReplica(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	f, err := s.ReplicaFindings(t.Context())
	if err != nil || len(f) != 1 || !strings.HasSuffix(f[0].What, "a (), b (), c (), d (), e () and 3 more") {
		t.Errorf("OB-10: got %+v, %v", f, err)
	}
}
