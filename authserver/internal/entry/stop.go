package entry

import (
	"context"
	"strconv"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Facts is what is known of people beside their accounts.
type Facts interface {
	Remember(ctx context.Context, name string, value []byte) (before []byte, err error)
}

func stopFact(userID string) string { return "stopped:" + userID }

// NoteStop notes that a person stops everything, before that is done: a sign-in that waits for its
// second proof has no session yet that could be ended (PE-10).
func NoteStop(ctx context.Context, f Facts, userID string, now time.Time) error {
	_, err := f.Remember(ctx, stopFact(userID), strconv.AppendInt(nil, now.Unix(), 10))
	return err
}

// stopped ends a session whose sign-in had begun when the person stopped everything. It looks after
// the session was stored: what was stored before the stop has ended with it.
func (e *Entry) stopped(ctx context.Context, p Proof, session storage.Hash) error {
	if p.Begun == 0 {
		return nil
	}
	at, err := e.Store.Remember(ctx, stopFact(p.UserID), nil)
	if err != nil {
		return refusal.Unavailable(err)
	}
	if stop, err := strconv.ParseInt(string(at), 10, 64); err != nil || stop < p.Begun {
		return nil
	}
	if err := e.Store.EndSession(ctx, session, e.Now()); err != nil {
		return refusal.Unavailable(err)
	}
	return ErrLate
}
