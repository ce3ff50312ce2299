package refusal

import (
	"errors"
	"fmt"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestReasonHasTheWordsOfAProvider checks that a provider's text is in the log and in attempts, and
// other causes are not (RU-12).
func TestReasonHasTheWordsOfAProvider(t *testing.T) {
	e := oauth.NewError(oauth.ServerError, "Corp does not accept this server.")
	said := e.Because(attempt.CauseProvider.Because(errors.New("AADSTS7000222")))
	for want, err := range map[string]error{
		"Corp does not accept this server. AADSTS7000222": fmt.Errorf("x: %w", said),
		"Corp does not accept this server.":               e.Because(errors.New("a secret detail")),
	} {
		if got := Reason(err); got != want {
			t.Errorf("RU-12: got %q, want %q", got, want)
		}
	}
}
