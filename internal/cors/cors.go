// Package cors lets MCP clients that run in a browser reach endpoints that identify no caller by a
// cookie, from any origin (Fetch, CORS protocol). The guard of an MCP server has rules of its own,
// since it names the origins that it permits.
package cors

import (
	"net/http"
)

// Headers are what clients send that a page may not send by itself.
const Headers = "Authorization, Content-Type, MCP-Protocol-Version"

// AllowAnyOrigin lets every page read the answer, and the headers in expose.
func AllowAnyOrigin(h http.Header, expose string) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", expose)
}

// Preflight answers an OPTIONS request: pages may use methods, and send Headers.
func Preflight(w http.ResponseWriter, methods string) {
	h := w.Header()
	h.Set("Allow", methods)
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Allow-Headers", Headers)
	h.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
}
