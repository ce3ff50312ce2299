package column

import "github.com/mcp-authd/mcp-authd/internal/storage"

// ToolColumns and ToolWithTexts are the columns that ReadTool reads.
const (
	toolColumns   = "resource, name, accepted, accepted_at, accepted_by, offered, offered_at"
	ToolColumns   = toolColumns + ", '', ''"
	ToolWithTexts = toolColumns + ", accepted_text, offered_text"
)

const newDigest = "coalesce(excluded.accepted, excluded.offered)"

// SeeTool stores an unknown tool, and offers a new definition of a known one. SeenTool returns
// its values.
const SeeTool = "INSERT INTO tools AS t (resource, name, accepted, accepted_text, accepted_at, offered, offered_text, offered_at)" +
	" VALUES ($1,$2,$3,$4,$5,$6,$7,$8)" +
	" ON CONFLICT (resource, name) DO UPDATE SET offered = " + newDigest +
	", offered_text = excluded.accepted_text || excluded.offered_text" + // one of them is empty
	", offered_at = excluded.accepted_at + excluded.offered_at" +
	" WHERE coalesce(t.accepted, $9) <> " + newDigest + " AND coalesce(t.offered, $9) <> " + newDigest +
	" RETURNING " + ToolColumns

// SeenTool returns the values of a tool for SeeTool.
func SeenTool(resource, name string, d storage.ToolDefinition, trust bool) []any {
	none := []byte{0} // the digest of no tool
	if trust {
		return []any{resource, name, d.Digest[:], d.Text, Millis(d.At), nil, "", int64(0), none}
	}
	return []any{resource, name, nil, "", int64(0), d.Digest[:], d.Text, Millis(d.At), none}
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
