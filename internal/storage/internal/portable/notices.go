package portable

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const unseenNotices = "SELECT " + column.NoticeColumns +
	" FROM notices WHERE user_id = $1 AND seen_at IS NULL ORDER BY at DESC, id DESC LIMIT $2"

// notices implements a verb of storage.Notices.
type notices struct{ db Engine }

// UnseenNotices implements storage.Notices.
func (s notices) UnseenNotices(ctx context.Context, userID string) (out []storage.Notice, err error) {
	err = s.db.Read(ctx, "UnseenNotices", func(c Conn) (err error) {
		out, err = Each(c, func(row Row) (storage.Notice, error) {
			var r column.NoticeRow
			err := row.Scan(r.Dest()...)
			return r.Notice(), err
		}, unseenNotices, userID, storage.MaxNotices)
		return err
	})
	return out, err
}
