package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// auditSinks checks how far log destinations have received the audit log (OB-06).
func auditSinks(t *testing.T, e *env) {
	open := func(name string, now time.Time) storage.AuditSink {
		t.Helper()
		s, err := e.s.OpenAuditSink(e.ctx, name, now)
		check(t, err)
		return s
	}
	t.Run("OB-06 a sink begins at the end that the log has, and stays where it is", func(t *testing.T) {
		same(t, open("early", e.now), storage.AuditSink{Name: "early", At: e.now})
		check(t, e.s.AppendAudit(e.ctx, "w", -1, e.appended(3)))
		same(t, open("late", e.now), storage.AuditSink{Name: "late", Next: 3, At: e.now})
		same(t, open("early", e.now.Add(time.Hour)), storage.AuditSink{Name: "early", At: e.now})
	})
	t.Run("OB-06 a sink moves on from where it is, and no other does", func(t *testing.T) {
		moved := storage.AuditSink{Name: "early", Next: 2, Lost: 1, Failed: "no route", At: e.now.Add(time.Second)}
		wantErr(t, e.s.MoveAuditSink(e.ctx, 1, moved), storage.ErrChanged)
		check(t, e.s.MoveAuditSink(e.ctx, 0, moved))
		wantErr(t, e.s.MoveAuditSink(e.ctx, 0, moved), storage.ErrChanged)
		wantErr(t, e.s.MoveAuditSink(e.ctx, 0, storage.AuditSink{Name: "unknown", At: e.now}), storage.ErrChanged)
		same(t, open("early", e.now), moved)
		all, err := e.s.AuditSinks(e.ctx)
		check(t, err)
		same(t, all, []storage.AuditSink{moved, {Name: "late", Next: 3, At: e.now}})
	})
}

// raceMoveSink: of replicas that have delivered the same entries, one advances the log destination.
func raceMoveSink(t *testing.T, e *env) {
	_, err := e.s.OpenAuditSink(e.ctx, "siem", e.now)
	check(t, err)
	var c tally
	compete(func(int) {
		c.add(e.s.MoveAuditSink(e.ctx, 0, storage.AuditSink{Name: "siem", Next: 1, At: e.now}), storage.ErrChanged)
	})
	c.want(t, 1)
}
