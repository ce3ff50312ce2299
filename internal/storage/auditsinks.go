package storage

import (
	"context"
	"time"
)

// Audits combines the roles for the audit log.
type Audits interface {
	AuditLog
	AuditCheckpoints
	AuditSinks
}

// AuditSinks stores how far each log destination has received the audit log.
type AuditSinks interface {
	// OpenAuditSink returns the log destination with a name. An unknown one is stored, and begins
	// at the current end of the log.
	OpenAuditSink(ctx context.Context, name string, now time.Time) (AuditSink, error)
	// MoveAuditSink replaces the record of a log destination if its Next still is from. Otherwise
	// it returns ErrChanged: one of N concurrent calls with the same from succeeds.
	MoveAuditSink(ctx context.Context, from int64, s AuditSink) error
	// AuditSinks returns all log destinations that were ever opened, by name.
	AuditSinks(ctx context.Context) ([]AuditSink, error)
}

// AuditSink is the position of a log destination in the audit log.
type AuditSink struct {
	Name   string
	Next   int64     // the index of the first entry that it has not received
	Lost   int64     // entries that it will never receive
	Failed string    // why the last delivery failed, UTF-8 without NUL; "": it succeeded
	At     time.Time // of the last change
}
