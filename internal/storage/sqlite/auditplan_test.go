package sqlite

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// OP-06: a search of the audit log walks along an index, and sorts only its results.
func TestAuditSearchesWalkAlongAnIndex(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Now()
	for want, q := range map[string]storage.AuditSearch{
		"SEARCH audit_entries USING INDEX audit_entries_at (at>? AND at<?)": {Since: now.Add(-time.Hour), Until: now},
		"SEARCH audit_entries USING INDEX audit_entries_event_at (event=? AND at<?)": {
			Event: "token.issued", After: storage.AuditPlace{At: now, Index: 7},
		},
		"SEARCH audit_entries USING INDEX audit_entries_person (person=? AND idx<?)": {
			Person: "usr_1", Event: "token.issued", After: storage.AuditPlace{At: now, Index: 7},
		},
		"SEARCH audit_entries USING INDEX audit_entries_grant (grant_id=?)": {Grant: "grt_1", Until: now},
	} {
		query, args := column.NewAuditSearch(q).Find()
		rows, err := s.reads.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
		if err != nil {
			t.Fatal(err)
		}
		var plan []string
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, detail)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(plan, "\n")
		byIndex := q.Grant != "" || q.Person != ""
		if !strings.Contains(got, want) || !byIndex && strings.Contains(got, "TEMP B-TREE") {
			t.Errorf("%+v: got the plan\n%s\nwant %s", q, got, want)
		}
	}
}
