package admin_test

import (
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// RU-13: the refusal of a recovery names the commands that come next.
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
