package column

import "github.com/mcp-authd/mcp-authd/internal/storage"

// AuditSinkColumns are the columns that ReadAuditSink reads.
const AuditSinkColumns = "name, next_idx, lost, failed, at"

// ReadAuditSink reads AuditSinkColumns.
func ReadAuditSink(row interface{ Scan(dest ...any) error }) (s storage.AuditSink, err error) {
	var at int64
	err = row.Scan(&s.Name, &s.Next, &s.Lost, &s.Failed, &at)
	s.At = Time(at)
	return s, err
}
