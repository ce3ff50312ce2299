package column

import (
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// A notice is kept for SeenFor after its user has seen it, and for UnseenFor at most.
const (
	SeenFor   = 30 * 24 * time.Hour
	UnseenFor = 365 * 24 * time.Hour
)

// NoticeColumns are the columns of a notice, in the order of NoticeRow.
const NoticeColumns = "id, user_id, kind, detail, at"

// NoticeRow reads NoticeColumns.
type NoticeRow struct {
	n  storage.Notice
	at int64
}

func (r *NoticeRow) Dest() []any { return []any{&r.n.ID, &r.n.UserID, &r.n.Kind, &r.n.Detail, &r.at} }

func (r *NoticeRow) Notice() storage.Notice {
	n := r.n
	n.At = Time(r.at)
	return n
}
