package mcpresource

import (
	"net/http"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"
)

// checkMethod admits what MCP uses, and HEAD and OPTIONS, which the server may know.
// It comes after authentication: clients probe with any method, and learn from the
// challenge where to sign in.
func checkMethod(r *http.Request) *refusal {
	switch r.Method {
	case http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodHead, http.MethodOptions:
		return nil
	}
	return &refusal{outcome: "method", status: http.StatusMethodNotAllowed, allow: "GET, POST, DELETE", text: "This method is not served here."}
}

// overrides make some frameworks see another method than the one that was judged. They are
// canonical.
var overrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// compare holds the headers that mirror the body against it, whatever the revision, because
// proxies and logs go by them (MCP 2026-07-28, Streamable HTTP, "Server Validation", RS-146, RS-147). That
// one is missing is for the server to refuse, which knows whether its revision has it.
func compare(r *http.Request, p *passage) *refusal {
	for _, m := range p.envelope.Messages {
		if m.Implied {
			continue
		}
		if !mirrors(r.Header, mcp.HeaderMethod, m.Method) {
			no := p.mismatch(mcp.HeaderMethod)
			if m.Method == "" { // a response has none to mirror
				no.code = mcp.CodeInvalidRequest
			}
			return no
		}
		named := m.Method == "tools/call" || m.Method == "prompts/get" || message.IsResource(m.Method)
		if named && !mirrors(r.Header, mcp.HeaderName, m.Name) {
			return p.mismatch(mcp.HeaderName)
		}
	}
	return nil
}

// mirrors reports whether a header says value, or is not there.
func mirrors(h http.Header, name, value string) bool {
	sent, ok := h[name]
	return !ok || sent[0] == value || strings.TrimSpace(sent[0]) == value
}

func (p *passage) mismatch(header string) *refusal {
	return &refusal{outcome: "ambiguous", status: http.StatusBadRequest, code: mcp.CodeHeaderMismatch, id: p.envelope.ID, text: "The header " + header + " does not match the body."}
}
