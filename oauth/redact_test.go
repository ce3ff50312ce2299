package oauth

import "testing"

// TestRedacted checks that user information, query and fragment are removed, and that Redacted is
// idempotent.
func TestRedacted(t *testing.T) {
	for raw, want := range map[string]string{
		"https://mcp.example.com/mcp":               "https://mcp.example.com/mcp",
		"https://bob:hunter2@mcp.example.com/mcp":   "https://...@mcp.example.com/mcp",
		"https://mcp.example.com/mcp?key=s3cret#at": "https://mcp.example.com/mcp?...#...",
		"urn:note:s3cret":                           "urn:...",
		"file:///home/bob/a%20b?x":                  "file:///home/bob/a%20b?...",
		"not a URL: %zz":                            NotURL,
		"":                                          "",
	} {
		got := Redacted(raw)
		if got != want || Redacted(got) != want && want != NotURL {
			t.Errorf("%q: got %q, again %q, want %q", raw, got, Redacted(got), want)
		}
	}
}
