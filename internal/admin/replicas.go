package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// The states of a replica.
const (
	ReplicaRunning = "running"
	ReplicaLost    = "lost"
)

const (
	// lostAfter is the time without a heartbeat after which a replica counts as lost. A running
	// replica is seen four times in it.
	lostAfter = time.Minute
	// tellLost is how long a lost replica is reported. It is listed for a day.
	tellLost = time.Hour
	// maxNamed limits how many replicas a finding names.
	maxNamed = 5
)

// Replica is a server that uses this database, or was lost less than a day ago.
type Replica struct {
	ID        string    `json:"id" jsonschema:"id of the process; new at each start"`
	Name      string    `json:"name" jsonschema:"host name, or the configured name"`
	State     string    `json:"state" jsonschema:"running; or lost: not seen for a minute, without a clean stop"`
	This      bool      `json:"this,omitempty" jsonschema:"true for the replica that sent this response"`
	Version   string    `json:"version" jsonschema:"version of its program"`
	Migration int       `json:"migration" jsonschema:"last migration that its program knows"`
	Issuer    string    `json:"issuer"`
	Address   string    `json:"address" jsonschema:"listen address"`
	StartedAt time.Time `json:"started_at"`
	SeenAt    time.Time `json:"seen_at" jsonschema:"by the clock of the database"`
	// The following fields were reported by this replica at SeenAt, and concern it alone.
	ClockBehindMS int64 `json:"clock_behind_ms" jsonschema:"by how much the clock of its machine is behind the database's"`
	AuditWaiting  int   `json:"audit_waiting" jsonschema:"entries queued for the audit log"`
	AuditLost     int64 `json:"audit_lost" jsonschema:"entries lost since its start"`

	peerAddress string // these two: see storage.Replica
	unreached   string
}

// running reports whether the replica was seen recently.
func (r Replica) running() bool { return r.State == ReplicaRunning }

// called returns the name of a replica with its address, because several replicas may have the same
// name.
func (r Replica) called() string { return r.Name + " (" + r.Address + ")" }

func (s *Service) replicaOf(r storage.Replica) Replica {
	v := Replica{
		ID:            r.ID,
		Name:          r.Name,
		State:         ReplicaRunning,
		This:          r.ID == s.Replica,
		Version:       r.Version,
		Migration:     r.Migration,
		Issuer:        r.Issuer,
		Address:       r.Address,
		StartedAt:     r.StartedAt,
		SeenAt:        r.SeenAt,
		ClockBehindMS: r.Skew.Milliseconds(),
		AuditWaiting:  r.AuditWaiting,
		AuditLost:     r.AuditLost,
		peerAddress:   r.PeerAddress,
		unreached:     r.Unreached,
	}
	if s.Now().Sub(r.SeenAt) > lostAfter {
		v.State = ReplicaLost
	}
	return v
}

// replicas returns the running replicas by name, then the lost ones, latest first.
func (s *Service) replicas(ctx context.Context) (out []Replica, schema int, err error) {
	seen, schema, err := s.Store.Replicas(ctx, s.Now())
	if err != nil {
		return nil, 0, fmt.Errorf("the replicas cannot be read: %w", err)
	}
	out = []Replica{}
	for _, r := range seen {
		out = append(out, s.replicaOf(r))
	}
	slices.SortStableFunc(out, func(a, b Replica) int {
		switch {
		case a.State != b.State:
			return -cmp.Compare(a.State, b.State) // running before lost
		case a.running():
			return cmp.Or(cmp.Compare(a.Name, b.Name), a.StartedAt.Compare(b.StartedAt))
		}
		return b.SeenAt.Compare(a.SeenAt)
	})
	return out, schema, nil
}

// ReplicaFindings reports whether all servers of this database run and are compatible with each
// other.
func (s *Service) ReplicaFindings(ctx context.Context) (findings, error) {
	if s.Store == nil {
		return nil, nil
	}
	all, schema, err := s.replicas(ctx)
	if err != nil {
		return nil, err
	}
	return s.replicaFindings(all, schema), nil
}

func (s *Service) replicaFindings(all []Replica, schema int) (f findings) {
	running := slices.DeleteFunc(slices.Clone(all), func(r Replica) bool { return !r.running() })
	versions := by(running, func(r Replica) string { return r.Version })
	if len(versions) > 1 {
		f.add("replicas", LevelWarning, "during an upgrade that is as it should be; when it is over, upgrade the others",
			"replicas run different versions: %s", sorted(versions))
	}
	old := by(running, func(r Replica) string {
		if r.Migration >= schema {
			return ""
		}
		return fmt.Sprintf("up to %d", r.Migration)
	})
	delete(old, "")
	if len(old) > 0 {
		f.add("replicas", LevelWarning, "upgrade them; until then they work as far as the steps allow",
			"the schema is at step %d, and replicas do not know all of its steps: %s", schema, sorted(old))
	}
	if issuers := by(running, func(r Replica) string { return r.Issuer }); len(issuers) > 1 {
		f.add("replicas", LevelWarning, "set the same issuer on each: what one issues, clients and MCP servers of the "+
			"other refuse", "replicas have different issuers: %s", sorted(issuers))
	}
	f = append(f, s.lostReplicas(all)...)
	f = append(f, s.peerFindings(running)...)
	for _, r := range running {
		if behind := time.Duration(r.ClockBehindMS) * time.Millisecond; behind.Abs() > tellSkew && !r.This {
			f.add("clock", LevelWarning, "keep that machine right by NTP (timedatectl, chronyc tracking)",
				"the clock of replica %s and that of the database differ by %s; servers go by the database's", r.called(),
				behind.Abs())
		}
	}
	if len(f) > 0 {
		return f
	}
	switch len(running) {
	case 0:
		f.add("replicas", LevelSkipped, "", "no server of this database tells that it runs")
	case 1:
		f.add("replicas", LevelOK, "", "1 server runs: %s, version %s", running[0].called(), running[0].Version)
	default:
		f.add("replicas", LevelOK, "", "%s, all of version %s",
			label.Count(len(running), "replica runs", "replicas run"), running[0].Version)
	}
	return f
}

// lostReplicas reports the replicas that were lost within the last hour.
func (s *Service) lostReplicas(all []Replica) (f findings) {
	var gone []string
	for _, r := range all {
		if r.running() || s.Now().Sub(r.SeenAt) > tellLost {
			continue
		}
		what := r.called() + ", last seen at " + r.SeenAt.UTC().Format(time.RFC3339)
		if slices.ContainsFunc(all, func(o Replica) bool {
			return o.running() && o.Name == r.Name && o.Address == r.Address && o.StartedAt.After(r.StartedAt)
		}) {
			what += ", has been started again"
		}
		gone = append(gone, what)
	}
	if len(gone) > 0 {
		f.add("replicas", LevelWarning, "it was killed, its machine is gone, or it does not reach the database: see its log",
			"%s lost within the last hour: %s", label.Count(len(gone), "replica was", "replicas were"), some(gone))
	}
	return f
}

// by groups the names of replicas by a common property.
func by(all []Replica, key func(Replica) string) map[string][]string {
	out := map[string][]string{}
	for _, r := range all {
		out[key(r)] = append(out[key(r)], r.called())
	}
	return out
}

// sorted formats the groups of by, sorted by property.
func sorted(by map[string][]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, key+": "+some(by[key]))
	}
	return strings.Join(parts, "; ")
}

// some joins the first names, and says how many more there are.
func some(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
