package storage

import (
	"context"
	"time"
)

// AuditLog stores the audit log as a list of entries that only grows, with the hashes of its Merkle
// tree. The caller of AppendAudit computes the hashes.
type AuditLog interface {
	// AuditHead returns the size of the log, and the progress of one writer.
	AuditHead(ctx context.Context, writer string) (AuditHead, error)
	// AppendAudit appends the result of build to the log, in one transaction: entries, the tiles
	// that grow with them, and the writer's progress. Concurrent calls queue, so each build sees
	// the end left by the previous call. If the log has the known size, the end contains no tiles.
	// build may be called more than once. If it fails, AppendAudit appends nothing and returns its
	// error.
	AppendAudit(ctx context.Context, writer string, known int64, build func(AuditEnd) (AuditAppend, error)) error
	// AuditEntries returns up to q.Limit entries that match q, by index.
	AuditEntries(ctx context.Context, q AuditQuery) ([]AuditEntry, error)
	// SearchAudit returns up to q.Limit entries that match q, latest first, and the place to
	// continue from, zero at the end. It reads at most q.Reads entries, so a page may have few
	// entries, or none, although another page follows.
	SearchAudit(ctx context.Context, q AuditSearch) (found []AuditEntry, next AuditPlace, err error)
	// AuditTiles returns up to limit tiles of a level, beginning with a number, by number.
	AuditTiles(ctx context.Context, level int, from int64, limit int) ([]AuditTile, error)
	// RemoveAudit removes up to limit of the oldest entries with an index below below, and returns
	// the index of the first one left. Their hashes stay.
	RemoveAudit(ctx context.Context, below int64, limit int) (first int64, err error)
}

// AuditCheckpoints stores the signed checkpoints of the audit log.
type AuditCheckpoints interface {
	// PutCheckpoint stores a signed checkpoint. It returns ErrExists if one of its size is stored.
	PutCheckpoint(ctx context.Context, c AuditCheckpoint) error
	// Checkpoints returns up to limit checkpoints with a size greater than after, by size.
	Checkpoints(ctx context.Context, after int64, limit int) ([]AuditCheckpoint, error)
	// LastCheckpoint returns the largest checkpoint, or ErrNotFound.
	LastCheckpoint(ctx context.Context) (AuditCheckpoint, error)
}

// AuditHead is the extent of the audit log.
type AuditHead struct {
	Size  int64 // number of entries ever appended; the index of the next one
	First int64 // entries with a lower index were removed
	Mark  int64 // how many of the writer's entries are in the log
}

// AuditEnd is the end of the log, passed to the caller that appends to it.
type AuditEnd struct {
	AuditHead
	Tiles []AuditTile // the last tile of each level, if it is not full
}

// AuditAppend is a batch of entries.
type AuditAppend struct {
	Mark    int64 // the writer's progress afterwards; not stored for the writer ""
	Entries []AuditEntry
	Tiles   []AuditTile // as after the append
	Now     time.Time
}

// AuditEntry is one entry of the log. The leaf contains all fields except Index and Leaf. They are
// stored beside it for searches.
type AuditEntry struct {
	Index  int64
	At     time.Time
	Event  string
	Grant  string // id; "" for none
	Person string // id; "" for none
	Leaf   []byte // see package audit/verify
}

// AuditQuery selects entries in a range of indexes. Empty texts and zero times match any.
type AuditQuery struct {
	From, Below int64 // From <= index < Below
	Grant       string
	Event       string
	Since       time.Time
	Last        bool // return the last matches, not the first
	Limit       int
}

// AuditReads bounds how many entries one search reads: some tens of milliseconds of work.
const AuditReads = 20_000

// AuditSearch selects entries. Empty texts and zero times match any. Results are newest first by
// time, but by index for one grant or person. The two orders differ only for entries that waited in
// a file during an outage of the database.
type AuditSearch struct {
	Grant  string
	Person string
	Event  string
	Since  time.Time
	Until  time.Time  // exclusive
	After  AuditPlace // the end of the previous page; zero: begin with the latest
	Limit  int
	Reads  int // the entries to read at most; 0, or more than AuditReads: AuditReads
}

// AuditPlace is the position of an entry in the order of a search.
type AuditPlace struct {
	At    time.Time
	Index int64
}

// AuditTile holds up to 256 hashes of one level of the tree, of subtrees with 256^Level leaves
// each.
type AuditTile struct {
	Level  int
	Number int64 // its first hash is that of the subtree Number*256
	Hashes []byte
}

// AuditCheckpoint is a signed checkpoint.
type AuditCheckpoint struct {
	Size   int64
	At     time.Time
	Signed []byte // C2SP tlog-checkpoint
}
