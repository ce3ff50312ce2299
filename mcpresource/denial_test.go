package mcpresource

import (
	"encoding/json"
	"net/http"
	"testing"
)

// TestStructuredDenials checks the data of a 403 with StructuredDenials.
func TestStructuredDenials(t *testing.T) {
	for _, tt := range []struct {
		name, token, body string
		on                bool
		want              *Denial
	}{
		{"less scope", "alice", tool("write_note"), true,
			&Denial{"insufficient_authorization", "K7PX2M4Q", "replacement"}},
		{"less scope, not asked for", "alice", tool("write_note"), false, nil},
		{"a bad token", "nonsense", tool("read"), true, nil},
		{"no token", "", tool("read"), true, nil},
	} {
		t.Run("RS-214 "+tt.name, func(t *testing.T) {
			r := newRig(t, func(c *Config) {
				c.StructuredDenials, c.Decisions = tt.on, &noted{reference: "K7PX2M4Q"}
			})
			header := []string{"Content-Type", "application/json"}
			if tt.token != "" {
				header = append(header, "Authorization", "Bearer "+tt.token)
			}
			answer := r.do(http.MethodPost, "/mcp", tt.body, header...)
			var body struct {
				Error struct {
					Data struct {
						Reference     string
						Scope         string
						Authorization *Denial
					}
				}
			}
			if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			got := body.Error.Data.Authorization
			if (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if body.Error.Data.Reference != "K7PX2M4Q" || answer.Header().Get("WWW-Authenticate") == "" {
				t.Errorf("the rest is not as without: %s %v", answer.Body, answer.Header())
			}
		})
	}
}

// readers are Decisions that also implement Readings.
type readers struct {
	noted
	read []string
}

func (r *readers) Read(_ *http.Request, resource string) { r.read = append(r.read, resource) }

func TestReadingsAreTold(t *testing.T) {
	n := &readers{}
	r := newRig(t, func(c *Config) { c.Decisions = n })
	for _, method := range []string{http.MethodGet, http.MethodOptions, http.MethodHead} {
		r.do(method, "/.well-known/oauth-protected-resource/mcp", "")
	}
	if len(n.read) != 1 || n.read[0] != resource {
		t.Errorf("OB-01: got %q", n.read)
	}
}
