package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
)

var errUnspeakable = errors.New("the caller's name has characters that no header can hold")

// statusError is an HTTP status of the MCP server, or of a proxy before it, whose body is in no
// form that an MCP client reads.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("the MCP server answers %d", int(e)) }

// Fault is a JSON-RPC error that the gateway sends instead of the MCP server's answer.
type Fault struct {
	Status  int
	Code    int             // JSON-RPC
	ID      json.RawMessage // of the request; nil: null
	Message string
	Data    any
	Retry   int // seconds; 0: no Retry-After
}

// fault returns the error that the client gets for err. The log has the cause: clients do not see
// addresses behind the gateway.
func fault(err error) Fault {
	var timeout net.Error
	var status statusError
	var interaction *InteractionRequired
	switch {
	case errors.As(err, &interaction):
		return Fault{
			Status: http.StatusForbidden, Code: mcp.CodeURLElicitationNeeded, Message: interaction.Message,
			Data: elicitation(interaction),
		}
	case errors.As(err, &status):
		return Fault{Status: int(status), Code: mcp.CodeInternal, Message: "The MCP server has failed."}
	case errors.Is(err, errCredentials):
		return Fault{
			Status: http.StatusBadGateway, Code: mcp.CodeInternal,
			Message: "The MCP server does not accept the gateway. Its operator has to look into it.",
		}
	case errors.Is(err, errRedirect):
		return Fault{
			Status: http.StatusBadGateway, Code: mcp.CodeInternal,
			Message: "The MCP server is elsewhere. Its operator has to look into it.",
		}
	case errors.Is(err, errUnreadable):
		return Fault{
			Status: http.StatusBadGateway, Code: mcp.CodeInternal,
			Message: "The answer of the MCP server is compressed, or in another form that the gateway cannot read.",
		}
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return Fault{
			Status: http.StatusGatewayTimeout, Code: mcp.CodeInternal,
			Message: "The MCP server does not answer in time.",
		}
	}
	return Fault{Status: http.StatusBadGateway, Code: mcp.CodeInternal, Message: "The MCP server cannot be reached."}
}

// elicitation returns error data that asks the client to open a page (MCP 2025-11-25, Elicitation,
// "URL mode").
func elicitation(i *InteractionRequired) any {
	return map[string]any{
		"elicitations": []map[string]string{
			{"mode": "url", "url": i.URL, "message": i.Message, "elicitationId": i.URL},
		},
	}
}

func interactionURL(err error) string {
	var i *InteractionRequired
	if errors.As(err, &i) {
		return i.URL
	}
	return ""
}

// fail writes the error for an MCP server that did not answer. It is the proxy's ErrorHandler. The
// guard answers for a request that was ended, because it knows the reason: a timeout, a revoked
// token or a server that is stopping.
func (u *Upstream) fail(w http.ResponseWriter, r *http.Request, err error) {
	if ended := context.Cause(r.Context()); ended != nil {
		u.c.Logger.DebugContext(r.Context(), "request ended", "resource", u.c.Resource, "error", ended)
		return
	}
	u.c.Logger.WarnContext(r.Context(), "upstream failed", "resource", u.c.Resource, "upstream", u.target.Redacted(),
		"error", err)
	f := fault(err)
	f.ID = requestID(r)
	// Only this revision defines the code.
	if f.Code == mcp.CodeURLElicitationNeeded && r.Header.Get(mcp.HeaderVersion) != mcp.Rev20251125 {
		f.Code, f.Message = mcp.CodeRefused, f.Message+" Open: "+interactionURL(err)
		f.Data = nil
	}
	f.Write(w)
}

// Write sends the fault as a JSON-RPC error.
func (f Fault) Write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	Sandbox(h)
	if f.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(f.Retry))
	}
	w.WriteHeader(f.Status)
	w.Write(append(f.Encode(), '\n')) // fails only if the client is gone
}

// Encode returns the fault as a JSON-RPC error.
func (f Fault) Encode() []byte {
	if len(f.ID) == 0 {
		f.ID = json.RawMessage("null")
	}
	type rpcError struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}
	b, _ := json.Marshal(struct { // cannot fail: strings, and an id that was parsed
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   rpcError        `json:"error"`
	}{"2.0", f.ID, rpcError{f.Code, f.Message, f.Data}})
	return b
}

// requestID returns the id of the request in the body. It returns nil unless the body is exactly
// one call.
func requestID(r *http.Request) json.RawMessage {
	if r.GetBody == nil {
		return nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil
	}
	var call struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(raw, &call) != nil || call.Method == "" || len(call.ID) == 0 {
		return nil
	}
	return call.ID
}
