package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// runs runs a command in this process, and returns its exit code and output.
func runs(t *testing.T, environ []string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	code = run(t.Context(), args, std{strings.NewReader("correct horse battery\n"), &o, &e, environ})
	return code, o.String(), e.String()
}

// scriptUserID implements userid VARIABLE: it stores the ID of the first account of a list.
func scriptUserID(ts *testscript.TestScript, _ bool, args []string) {
	var all []admin.User
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &all))
	ts.Setenv(args[0], all[0].ID)
}

// TestLookingMakesNoSchema checks that a command that reads leaves an empty PostgreSQL database
// empty (issue 11, 4.4).
func TestLookingMakesNoSchema(t *testing.T) {
	environ := []string{
		"HOME=" + t.TempDir(), "MCP_AUTHD_DATABASE_URL=" + pgtest.Start(t).Database(t),
		"MCP_AUTHD_SECRET_KEY=0123456789012345678901234567890123456789",
	}
	for range 2 { // the second run would find tables of the first
		code, _, errs := runs(t, environ, "user", "list")
		if code != exitFailure || !strings.Contains(errs, "PostgreSQL: ") || !strings.Contains(errs, "migrate up") {
			t.Errorf("user list: got %d %q, want that it is not migrated", code, errs)
		}
	}
	if _, out, _ := runs(t, environ, "migrate", "status"); strings.Contains(out, "20"+time.Now().Format("06-")) ||
		!strings.Contains(out, "pending") {
		t.Errorf("migrate status: got %q, want pending steps alone", out)
	}
	if code, _, errs := runs(t, environ, "user", "add", "alice", "--password-stdin"); code != exitOK {
		t.Fatalf("user add: got %d %s", code, errs)
	}
	if code, out, errs := runs(t, environ, "user", "list"); code != exitOK || !strings.Contains(out, "alice") {
		t.Errorf("user list: got %d %q %q, want alice", code, out, errs)
	}
}
