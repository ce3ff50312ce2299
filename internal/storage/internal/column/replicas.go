package column

import (
	"strconv"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// ReplicaColumns are the columns of ReadReplica and ReplicaValues, in order.
const ReplicaColumns = "id, name, version, migration, issuer, address, started_at, seen_at, skew, audit_waiting, audit_lost," +
	" peer_address, unreached"

// SeenAgain is the clause that updates a known replica.
const SeenAgain = " ON CONFLICT (id) DO UPDATE SET name = excluded.name, version = excluded.version," +
	" migration = excluded.migration, issuer = excluded.issuer, address = excluded.address," +
	" started_at = excluded.started_at, seen_at = excluded.seen_at, skew = excluded.skew," +
	" audit_waiting = excluded.audit_waiting, audit_lost = excluded.audit_lost," +
	" peer_address = excluded.peer_address, unreached = excluded.unreached" +
	" WHERE replicas.seen_at <= excluded.seen_at"

// SurplusReplicas selects the replicas beyond MaxReplicas. The LIMIT clause of the database goes
// between it and KeptReplicas.
const SurplusReplicas = "SELECT id FROM replicas ORDER BY seen_at DESC, id"

// KeptReplicas is the offset of the first replica to remove.
var KeptReplicas = " OFFSET " + strconv.Itoa(storage.MaxReplicas)

// ReadReplica reads ReplicaColumns.
func ReadReplica(row interface{ Scan(dest ...any) error }) (r storage.Replica, err error) {
	var started, seen, skew int64
	err = row.Scan(&r.ID, &r.Name, &r.Version, &r.Migration, &r.Issuer, &r.Address, &started, &seen, &skew,
		&r.AuditWaiting, &r.AuditLost, &r.PeerAddress, &r.Unreached)
	r.StartedAt, r.SeenAt, r.Skew = Time(started), Time(seen), time.Duration(skew)*time.Millisecond
	return r, err
}

// ReplicaValues returns the values of a replica.
func ReplicaValues(r storage.Replica) []any {
	return []any{
		r.ID, r.Name, r.Version, r.Migration, r.Issuer, r.Address, Millis(r.StartedAt), Millis(r.SeenAt),
		r.Skew.Milliseconds(), r.AuditWaiting, r.AuditLost, r.PeerAddress, r.Unreached,
	}
}

// LastStep reads the last step of the schema that was applied.
const LastStep = "SELECT coalesce(max(version), 0) FROM schema_version"
