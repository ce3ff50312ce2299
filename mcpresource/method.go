package mcpresource

import "net/http"

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

// overrides make some frameworks see another method than the one that was judged.
var overrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}
