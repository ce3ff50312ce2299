package gosdk

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
)

// refusal is a response that replaces the SDK's.
type refusal struct {
	status int
	code   int64
	text   string
	id     json.RawMessage // nil without an id
}

func invalid(id json.RawMessage, text string) *refusal {
	return &refusal{http.StatusBadRequest, jsonrpc.CodeInvalidRequest, text, id}
}

func refuse(w http.ResponseWriter, refused *refusal) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Del("Content-Length")
	w.WriteHeader(refused.status)
	_, _ = w.Write(errorMessage(refused.id, refused.code, refused.text)) // fails if the client has gone
}

// errorMessage returns a JSON-RPC error response. Package jsonrpc cannot encode one without an id.
func errorMessage(id json.RawMessage, code int64, text string) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	type rpcError struct {
		Code    int64  `json:"code"`
		Message string `json:"message"`
	}
	b, _ := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   rpcError        `json:"error"`
	}{"2.0", id, rpcError{code, text}}) // the id has been decoded
	return b
}

// rpcErrors converts the SDK's plain text errors to JSON-RPC errors. From these a client sees that
// the server speaks MCP, and which request failed.
type rpcErrors struct {
	http.ResponseWriter
	id      json.RawMessage
	status  int    // of the SDK's response, 0 before; the guard may send another
	session string // in the SDK's response
	held    int    // status of an error whose text follows
}

// begin records status and session of the SDK's response.
func (w *rpcErrors) begin(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status, w.session = status, w.Header().Get(protocol.HeaderSession)
	}
}

// sessionless reports whether the SDK answered successfully without a session id.
func (w *rpcErrors) sessionless() bool {
	return w.status >= http.StatusOK && w.status < http.StatusMultipleChoices && w.session == ""
}

func (w *rpcErrors) WriteHeader(status int) {
	w.begin(status)
	if status >= http.StatusBadRequest && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.held = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *rpcErrors) Write(b []byte) (int, error) {
	if w.begin(http.StatusOK); w.held == 0 {
		return w.ResponseWriter.Write(b)
	}
	refuse(w.ResponseWriter, translate(w.held, strings.TrimSpace(string(b)), w.id))
	w.held = 0
	return len(b), nil
}

// Flush implements http.Flusher.
func (w *rpcErrors) Flush() {
	w.begin(http.StatusOK)
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap gives http.ResponseController access to the wrapped writer.
func (w *rpcErrors) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// translate returns an error of the SDK with the right status and code.
func translate(status int, text string, id json.RawMessage) *refusal {
	refused := &refusal{status, jsonrpc.CodeInvalidRequest, text, id}
	switch {
	case strings.HasPrefix(text, "JSON RPC not handled") && id != nil:
		refused.status, refused.code, refused.text = http.StatusOK, jsonrpc.CodeMethodNotFound, "Method not found."
	case strings.HasPrefix(text, "Accept must contain"):
		refused.status = http.StatusNotAcceptable
	case strings.HasPrefix(text, "malformed payload"):
		refused.code, refused.text = jsonrpc.CodeParseError, "The request body is malformed."
	case status == http.StatusNotFound || strings.HasPrefix(text, "session user mismatch"):
		// does not reveal that the session belongs to someone else
		refused.status, refused.code, refused.text = http.StatusNotFound, protocol.CodeRefused, "Session not found."
	case status >= http.StatusInternalServerError:
		refused.code, refused.text = jsonrpc.CodeInternalError, "Internal error."
	}
	return refused
}
