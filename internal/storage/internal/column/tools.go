package column

import "github.com/mcp-authd/mcp-authd/internal/storage"

// ToolColumns and ToolWithTexts are the columns that ReadTool reads.
const (
	toolColumns   = "resource, name, accepted, accepted_at, accepted_by, offered, offered_at"
	ToolColumns   = toolColumns + ", '', ''"
	ToolWithTexts = toolColumns + ", accepted_text, offered_text"
)

// SeenToolColumns are the columns of SeenTool.
const SeenToolColumns = "resource, name, accepted, accepted_text, accepted_at, offered, offered_text, offered_at"

// SeenTool returns the values of a tool that was unknown.
func SeenTool(resource, name string, d storage.ToolDefinition, trust bool) []any {
	if trust {
		return []any{resource, name, d.Digest[:], d.Text, Millis(d.At), nil, "", int64(0)}
	}
	return []any{resource, name, nil, "", int64(0), d.Digest[:], d.Text, Millis(d.At)}
}

// ToolAgain returns the clause that updates a known tool. none is the SQL for no digest.
func ToolAgain(none string) string {
	const seen = "coalesce(excluded.accepted, excluded.offered)"
	return " ON CONFLICT (resource, name) DO UPDATE SET offered = " + seen +
		", offered_text = excluded.accepted_text || excluded.offered_text" + // one of them is empty
		", offered_at = excluded.accepted_at + excluded.offered_at" +
		" WHERE coalesce(t.accepted, " + none + ") <> " + seen + " AND coalesce(t.offered, " + none + ") <> " + seen +
		" RETURNING " + ToolColumns
}

// ToolRow reads a tool.
type ToolRow struct {
	storage.Tool
	accepted, offered     []byte
	acceptedAt, offeredAt int64
}

// Dest returns the scan destinations of ToolColumns or ToolWithTexts.
func (r *ToolRow) Dest() []any {
	return []any{
		&r.Resource, &r.Name, &r.accepted, &r.acceptedAt, &r.AcceptedBy, &r.offered, &r.offeredAt, &r.Accepted.Text,
		&r.Offered.Text,
	}
}

// Done returns the tool that was read.
func (r *ToolRow) Done() (t storage.Tool, err error) {
	t = r.Tool
	if r.accepted != nil {
		t.Accepted.At = Time(r.acceptedAt)
		if t.Accepted.Digest, err = Hash(r.accepted); err != nil {
			return t, err
		}
	}
	if r.offered != nil {
		t.Offered.At = Time(r.offeredAt)
		t.Offered.Digest, err = Hash(r.offered)
	}
	return t, err
}

// ReadTool reads ToolColumns or ToolWithTexts.
func ReadTool(row interface{ Scan(dest ...any) error }) (storage.Tool, error) {
	var r ToolRow
	if err := row.Scan(r.Dest()...); err != nil {
		return storage.Tool{}, err
	}
	return r.Done()
}

// UnacceptedTool returns why the definition with the digest was not accepted, nil if it already
// was.
func UnacceptedTool(t storage.Tool, digest storage.Hash) error {
	if !t.IsOffered() && !t.IsNew() && t.Accepted.Digest == digest {
		return nil
	}
	return storage.ErrChanged
}
