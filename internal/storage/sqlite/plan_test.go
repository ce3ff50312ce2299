package sqlite

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// AS-243: for each node of a status list, which is public, the query checks whether it is cut. It
// must read only the cut nodes of its grant, and not all of them.
func TestCutNodesAreFoundByTheirIndex(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plan.db")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db, err := sql.Open("sqlite", fileURI(path))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("EXPLAIN QUERY PLAN "+revokedGrants, 0, 1, storage.FirstNodeIndex)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(detail + "\n")
	}
	if err := rows.Err(); err != nil || !strings.Contains(plan.String(), "a USING INDEX nodes_cut (grant_id=?)") {
		t.Errorf("%v, the plan is\n%s", err, plan.String())
	}
}
