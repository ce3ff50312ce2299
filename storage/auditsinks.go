package storage

import (
	"context"
	"time"
)

// Audits is all that is kept of the audit log.
type Audits interface {
	AuditLog
	AuditCheckpoints
	AuditSinks
}

// AuditSinks keeps how far each sink has the audit log.
type AuditSinks interface {
	// OpenAuditSink returns the sink of a name. One that is not known is kept, and begins at the end
	// that the log has now.
	OpenAuditSink(ctx context.Context, name string, now time.Time) (AuditSink, error)
	// MoveAuditSink replaces what is kept of a sink, if its Next still is from. ErrChanged when it is
	// not: of N concurrent calls that move it on from one place, one does.
	MoveAuditSink(ctx context.Context, from int64, s AuditSink) error
	// AuditSinks returns all sinks that were ever opened, by name.
	AuditSinks(ctx context.Context) ([]AuditSink, error)
}

// AuditSink is how far a sink has the audit log.
type AuditSink struct {
	Name   string
	Next   int64     // the index of the first entry that it does not have
	Lost   int64     // entries that it will never have
	Failed string    // why the last delivery failed, as text in UTF-8 without NUL; "": it did not
	At     time.Time // of the last change
}
