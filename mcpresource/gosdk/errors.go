package gosdk

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
)

// refusal is an answer instead of the SDK's.
type refusal struct {
	status int
	code   int64
	text   string
	id     json.RawMessage // nil when there is none
}

func invalid(id json.RawMessage, text string) *refusal {
	return &refusal{http.StatusBadRequest, jsonrpc.CodeInvalidRequest, text, id}
}

func refuse(w http.ResponseWriter, refused *refusal) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Del("Content-Length")
	w.WriteHeader(refused.status)
	_, _ = w.Write(errorMessage(refused.id, refused.code, refused.text)) // fails when the client has gone
}

// errorMessage is a JSON-RPC error response. The package jsonrpc cannot write one
// without an id.
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

// rpcErrors turns the SDK's errors in plain text into JSON-RPC errors, by which a
// client knows that the server speaks MCP, and which request it was.
type rpcErrors struct {
	http.ResponseWriter
	id      json.RawMessage
	status  int    // that the SDK answers, 0 before; the guard may answer in its place
	session string // that it names with it
	held    int    // status of an error whose text is to come
}

// begin notes the head of the SDK's answer.
func (w *rpcErrors) begin(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status, w.session = status, w.Header().Get(protocol.HeaderSession)
	}
}

// sessionless reports whether the SDK has answered well and named no session.
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

// Unwrap lets http.ResponseController reach the writer below.
func (w *rpcErrors) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// translate gives an error of the SDK the status and code it should have.
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
		// the answer does not say whose it is
		refused.status, refused.code, refused.text = http.StatusNotFound, protocol.CodeRefused, "Session not found."
	case status >= http.StatusInternalServerError:
		refused.code, refused.text = jsonrpc.CodeInternalError, "Internal error."
	}
	return refused
}
