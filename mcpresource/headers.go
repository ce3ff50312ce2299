package mcpresource

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"
)

// compare checks the headers that mirror the body against it in every revision, because proxies and
// logs use them (MCP 2026-07-28, Streamable HTTP, "Server Validation", RS-146, RS-147). A missing
// header is for the server to refuse, which knows whether its revision has it.
func compare(r *http.Request, e message.Envelope) *refusal {
	for _, m := range e.Messages {
		if m.Implied {
			continue
		}
		if !mirrors(r.Header, mcp.HeaderMethod, m.Method) {
			refused := mismatch(mcp.HeaderMethod, e.ID)
			if m.Method == "" { // a response has none to mirror
				refused.code = mcp.CodeInvalidRequest
			}
			return refused
		}
		named := m.Method == "tools/call" || m.Method == "prompts/get" || message.IsResource(m.Method)
		if named && !mirrors(r.Header, mcp.HeaderName, m.Name) {
			return mismatch(mcp.HeaderName, e.ID)
		}
		if m.Task != "" && !mirrors(r.Header, mcp.HeaderName, m.Task) { // SEP-2663, RS-187
			return mismatch(mcp.HeaderName, e.ID)
		}
	}
	return nil
}

// mirrors reports whether a header is absent or equals value, apart from surrounding white space
// (RS-148).
func mirrors(h http.Header, name, value string) bool {
	sent, ok := h[name]
	return !ok || sent[0] == value || strings.TrimSpace(sent[0]) == value
}

// mismatch returns a refusal with the id of the request (RS-155).
func mismatch(header string, id json.RawMessage) *refusal {
	return &refusal{
		outcome: OutcomeAmbiguous, status: http.StatusBadRequest, code: mcp.CodeHeaderMismatch, id: id,
		text: "The header " + header + " does not match the body.",
	}
}

// first returns the first value of a header, or "". The name must be canonical: header maps of
// net/http are, and Header.Get would canonicalize it each time.
func first(h http.Header, canonical string) string {
	if values := h[canonical]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// singleHeaders lists headers that change how a server handles a request. If one is repeated, a
// proxy and the server could use different values. The names are canonical.
var singleHeaders = []string{
	mcp.HeaderMethod, mcp.HeaderName, mcp.HeaderVersion, mcp.HeaderSession, mcp.HeaderLastEvent, "Content-Type",
}

// repeated refuses a second value of such a header. It runs after the body is read, because the
// answer contains the id of the request (MCP 2026-07-28, Streamable HTTP, "Server Validation").
func repeated(r *http.Request, id json.RawMessage) *refusal {
	for _, h := range singleHeaders {
		if len(r.Header[h]) > 1 {
			return &refusal{
				outcome: OutcomeAmbiguous, status: http.StatusBadRequest, code: mcp.CodeHeaderMismatch,
				id: id, text: "The header " + h + " is repeated.",
			}
		}
	}
	return nil
}

const (
	base64Prefix = "=?base64?"
	base64Suffix = "?="
)

// decodeName decodes a Base64 Mcp-Name, which MCP servers must do and not every library does (MCP
// 2026-07-28, Streamable HTTP, RS-149). It returns the encoded name, or "" if the name is plain. The
// markers are case-sensitive. Invalid Base64 is refused (RS-150).
func decodeName(r *http.Request, id json.RawMessage) (sent string, refused *refusal) {
	v := strings.TrimSpace(first(r.Header, mcp.HeaderName))
	encoded, ok := strings.CutPrefix(v, base64Prefix)
	if ok {
		encoded, ok = strings.CutSuffix(encoded, base64Suffix)
	}
	if !ok {
		return "", nil
	}
	name, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || !utf8.Valid(name) || strings.ContainsAny(string(name), "\r\n\x00") {
		return "", &refusal{
			outcome: OutcomeAmbiguous, status: http.StatusBadRequest, code: mcp.CodeHeaderMismatch, id: id,
			text: "The header Mcp-Name is not valid Base64.",
		}
	}
	r.Header.Set(mcp.HeaderName, string(name))
	return v, nil
}
