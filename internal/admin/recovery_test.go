package admin_test

import (
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// TestRefusedRecoveryNamesWhatIsNext checks that a refused recovery names the next commands
// (RU-13).
func TestRefusedRecoveryNamesWhatIsNext(t *testing.T) {
	said := admin.ExplainUser(users.ErrOtherWays, "alice").Error()
	for _, want := range []string{
		"one that waits", "by force", "mcp-authd user ways alice,", "mcp-authd user ways remove alice WAY",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("RU-13: %q lacks %q", said, want)
		}
	}
}
