package authserver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/audit"
)

// TestConsentSaysWhatWasShown checks that the audit entry of an approval contains the texts of its
// page (OB-04, OB-05). The entry of a reused approval is marked as such, and has no texts.
func TestConsentSaysWhatWasShown(t *testing.T) {
	r := newRig(t)
	p := r.person()
	query := authorizeQuery("scope", "mcp notes:write")
	want := map[string]any{
		"shown_client": "An App", "shown_place": "loopback", "shown_resource": "Notes",
		"shown_scopes": "mcp: use the server; notes:write: add notes",
	}
	words, _ := json.Marshal([]string{"Notes", "mcp", "use the server", "required", "notes:write",
		"add notes"})
	digest := sha256.Sum256(words)
	want["shown_digest"] = hex.EncodeToString(digest[:])
	p.approve(query)
	got := r.last(t, audit.ConsentApproved)
	for name, text := range want {
		if got[name] != text {
			t.Errorf("OB-04 %s: got %v, want %v", name, got[name], text)
		}
	}
	if got["remembered"] != nil {
		t.Errorf("OB-04 an approval on a page is remembered: %v", got)
	}
	r.log.Reset()
	p.approve(query)
	got = r.last(t, audit.ConsentApproved)
	if got["remembered"] != true || got["shown_client"] != nil || got["shown_digest"] != nil {
		t.Errorf("OB-04 an approval without a page: got %v", got)
	}
}
