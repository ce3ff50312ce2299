package grant

import (
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// A code names its grant, which the store finds by key. A code of an earlier version names none.
func TestACodeNamesItsGrant(t *testing.T) {
	id := secrets.ID(Prefix)
	code := codeOf(id)
	if got := grantOf(code); got != id || !strings.HasPrefix(code, CodePrefix) ||
		len(code) != len(CodePrefix)+22+secrets.TokenSize {
		t.Errorf("%s of %s: got the grant %q", code, id, got)
	}
	if codeOf(id) == code {
		t.Error("two codes of one grant are the same")
	}
	for _, other := range []string{
		"", CodePrefix, "x", secrets.Token(CodePrefix), secrets.Token(""), "other_" + code, code[len(CodePrefix):],
	} {
		if got := grantOf(other); got != "" {
			t.Errorf("%q: got the grant %q, want none", other, got)
		}
	}
}
