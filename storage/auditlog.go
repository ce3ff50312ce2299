package storage

import (
	"context"
	"time"
)

// AuditLog keeps the audit as a list of entries that only grows, with the hashes of its Merkle tree.
// The store knows nothing of hashes: who appends computes them.
type AuditLog interface {
	// AuditHead says how far the log goes, and how far of what one writer has to append.
	AuditHead(ctx context.Context, writer string) (AuditHead, error)
	// AppendAudit appends what build returns for the end of the log: entries, the tiles that grow with
	// them, and how far the writer has come, all at once. Concurrent calls queue, so that each build sees
	// the end that the call before has left. The end has no tiles when the log has the known size. build
	// may be called again; when it fails, nothing is appended and its error is returned.
	AppendAudit(ctx context.Context, writer string, known int64, build func(AuditEnd) (AuditAppend, error)) error
	// AuditEntries returns up to q.Limit entries that q asks for, by index.
	AuditEntries(ctx context.Context, q AuditQuery) ([]AuditEntry, error)
	// SearchAudit returns up to q.Limit entries that q asks for, the latest first, and the place to go on from, a
	// zero one at the end. It reads at most AuditReads entries, so that a page may have few entries, or none, and
	// still another one after it.
	SearchAudit(ctx context.Context, q AuditSearch) (found []AuditEntry, next AuditPlace, err error)
	// AuditTiles returns up to limit tiles of a level, from a number on, by number.
	AuditTiles(ctx context.Context, level int, from int64, limit int) ([]AuditTile, error)
	// RemoveAudit removes up to limit of the oldest entries, those below an index, and returns the
	// index of the first that is left. Their hashes stay.
	RemoveAudit(ctx context.Context, below int64, limit int) (first int64, err error)
}

// AuditCheckpoints keeps what the key of the audit log has signed.
type AuditCheckpoints interface {
	// PutCheckpoint keeps a signed checkpoint. ErrExists when there is one of its size.
	PutCheckpoint(ctx context.Context, c AuditCheckpoint) error
	// Checkpoints returns up to limit checkpoints of more than after entries, by size.
	Checkpoints(ctx context.Context, after int64, limit int) ([]AuditCheckpoint, error)
	// LastCheckpoint returns the largest. ErrNotFound when there is none.
	LastCheckpoint(ctx context.Context) (AuditCheckpoint, error)
}

// AuditHead is how far the audit log goes.
type AuditHead struct {
	Size  int64 // entries that were ever appended; the next one has this index
	First int64 // the entries below it were removed
	Mark  int64 // of the writer: how many of its entries are in the log
}

// AuditEnd is the end of the log, for a batch that goes there.
type AuditEnd struct {
	AuditHead
	Tiles []AuditTile // of each level the last one, where it is not full
}

// AuditAppend is a batch of entries.
type AuditAppend struct {
	Mark    int64 // of the writer, afterwards; for the writer "" none is kept
	Entries []AuditEntry
	Tiles   []AuditTile // as they are afterwards
	Now     time.Time
}

// AuditEntry is one entry of the log. All but Index and Leaf is in the leaf too, and is kept beside it
// to be looked for.
type AuditEntry struct {
	Index  int64
	At     time.Time
	Event  string
	Grant  string // id; "" for none
	Person string // id; "" for none
	Leaf   []byte // see package audit/verify
}

// AuditQuery says which entries of a range of indexes. Empty texts and zero times: any.
type AuditQuery struct {
	From, Below int64 // From <= index < Below
	Grant       string
	Event       string
	Since       time.Time
	Last        bool // the last ones, not the first
	Limit       int
}

// AuditReads bounds how many entries one search reads: some tens of milliseconds of work.
const AuditReads = 20_000

// AuditSearch selects entries. Empty texts and zero times match any. Results are newest first by time, but by index for
// one grant or person. The two orders differ only for entries that waited in a file during an outage of the database.
type AuditSearch struct {
	Grant  string
	Person string
	Event  string
	Since  time.Time
	Until  time.Time  // before it
	After  AuditPlace // the place where the page before ended; zero: from the latest on
	Limit  int
}

// AuditPlace is where an entry stands in the order of a search.
type AuditPlace struct {
	At    time.Time
	Index int64
}

// AuditTile is up to 256 hashes of one level of the tree: those of its subtrees of 256^Level leaves.
type AuditTile struct {
	Level  int
	Number int64 // the first hash is that of the subtree Number*256
	Hashes []byte
}

// AuditCheckpoint is a signed checkpoint.
type AuditCheckpoint struct {
	Size   int64
	At     time.Time
	Signed []byte // C2SP tlog-checkpoint
}
