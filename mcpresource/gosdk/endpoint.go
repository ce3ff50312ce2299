package gosdk

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
)

// endpoint is one URL for both eras (RS-99, RS-137). It refuses what the SDK lets pass and should not,
// and says it in JSON-RPC.
type endpoint struct {
	adapter             *Adapter
	sessions, stateless http.Handler
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := &rpcErrors{ResponseWriter: w}
	if r.Method != http.MethodPost {
		e.serveOther(out, r)
		return
	}
	body, err := e.read(w, r)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		refuse(w, &refusal{
			http.StatusRequestEntityTooLarge, jsonrpc.CodeInvalidRequest, "The request body is too large.", nil,
		})
		return
	case err != nil:
		refuse(w, &refusal{http.StatusBadRequest, jsonrpc.CodeParseError, "The request body could not be read.", nil})
		return
	}
	b, refused := look(body)
	if refused == nil && b.modern(r) {
		refused = e.checkModern(b, r)
	} else if refused == nil {
		refused = e.checkSession(b, r)
	}
	if refused != nil {
		refuse(w, refused)
		return
	}
	if b.opens() && !b.modern(r) {
		if none := e.adapter.opensNone(b.messages[0].requested()); none != nil {
			refuseOpening(w, b, none)
			return
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if r.Header.Get("Accept") == "" {
		r.Header.Set("Accept", "*/*") // RFC 9110 §12.5.1: so it means; the SDK refuses it
	}
	if m := b.messages[0]; e.adapter.tasks != nil && !b.batch {
		r = r.WithContext(context.WithValue(r.Context(), carriedContext{}, m.taskMembers()))
	}
	out.id = b.id()
	if !b.listens() {
		defer e.adapter.calls.enter()()
	}
	if b.modern(r) {
		r.Header.Del(protocol.HeaderLastEvent) // it resumes nothing here, and the SDK refuses it
		e.stateless.ServeHTTP(out, r)
		return
	}
	e.sessions.ServeHTTP(out, r)
	if b.opens() && out.sessionless() {
		e.adapter.sessionless.Store(true)
	}
}

// serveOther is for GET and DELETE, which are about sessions.
func (e *endpoint) serveOther(w http.ResponseWriter, r *http.Request) {
	if protocol.IsStateless(r.Header.Get(protocol.HeaderVersion)) {
		r.Header.Del(protocol.HeaderLastEvent)
		e.stateless.ServeHTTP(w, r)
		return
	}
	if v := e.adapter.sessions.version(r.Header.Get(protocol.HeaderSession)); v != "" &&
		r.Header.Get(protocol.HeaderVersion) == "" {
		r.Header.Set(protocol.HeaderVersion, v)
	}
	if r.Method == http.MethodGet {
		if _, own := e.adapter.sessions.owned(r.Context(), r.Header.Get(protocol.HeaderSession)); own {
			read, done := e.adapter.readers.replace(w, r)
			defer done()
			ctx, returned := e.adapter.untilClosed(read.Context())
			defer returned()
			r = read.WithContext(ctx)
		}
	}
	e.sessions.ServeHTTP(w, r)
}

// read is bounded by the guard too, which may have a larger bound.
func (e *endpoint) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	most := e.adapter.o.Sessions.MaxRequestBodyBytes
	switch {
	case most < 0:
		return io.ReadAll(r.Body)
	case most == 0:
		most = mcp.DefaultMaxRequestBodyBytes
	}
	return io.ReadAll(http.MaxBytesReader(w, r.Body, most))
}

// modern reports whether a request is of the stateless era: by its _meta, or its header.
// With _meta and no header it is one too, and refused for it (MCP 2026-07-28, Streamable
// HTTP, "Protocol Version Header").
func (b body) modern(r *http.Request) bool {
	if protocol.IsStateless(r.Header.Get(protocol.HeaderVersion)) {
		return true
	}
	return slices.ContainsFunc(b.messages, message.isModern)
}

// checkModern refuses what 2026-07-28 does and the SDK does not.
func (e *endpoint) checkModern(b body, r *http.Request) *refusal {
	if refused := b.checkModern(r); refused != nil || e.adapter.tasks == nil {
		return refused
	}
	return b.checkTaskName(r)
}

func (b body) checkModern(r *http.Request) *refusal {
	m := b.messages[0]
	switch {
	case b.batch: // RS-137
		return invalid(nil, "The body has to be one request or notification.")
	case !m.isRequest():
		return invalid(nil, "The body has to be a request or notification: servers of this revision ask nothing.")
	}
	// Of two headers a proxy and the server might each believe another.
	for name, values := range r.Header {
		parameter := strings.HasPrefix(name, protocol.HeaderParamPrefix)
		if len(values) > 1 && (parameter || name == protocol.HeaderMethod || name == protocol.HeaderName ||
			name == protocol.HeaderVersion) {
			return &refusal{http.StatusBadRequest, mcp.CodeHeaderMismatch, "The header " + name + " is repeated.", m.ID}
		}
		if parameter && !isStrict(values[0]) {
			return &refusal{
				http.StatusBadRequest, mcp.CodeHeaderMismatch, "The header " + name + " is not valid Base64.", m.ID,
			}
		}
	}
	if m.ID == nil && r.Header.Get(protocol.HeaderMethod) == "" {
		r.Header.Set(protocol.HeaderMethod, *m.Method) // required of requests alone; the SDK asks for it here too
	}
	return nil
}

// isStrict reports whether a value in Base64 has the one spelling that it can have: the SDK decodes
// others, too (MCP 2026-07-28, Streamable HTTP, RS-150). A value without the
// markers is no Base64.
func isStrict(value string) bool {
	encoded, ok := strings.CutPrefix(value, "=?base64?")
	if ok {
		encoded, ok = strings.CutSuffix(encoded, "?=")
	}
	if !ok {
		return true
	}
	_, err := base64.StdEncoding.Strict().DecodeString(encoded)
	return err == nil
}

// checkSession refuses what the revisions with sessions do and the SDK does not.
func (e *endpoint) checkSession(b body, r *http.Request) *refusal {
	id := r.Header.Get(protocol.HeaderSession)
	if id == "" && !b.opens() && !e.adapter.sessionless.Load() { // initialize comes first: RS-70
		// Otherwise the SDK opens a session for it, and answers 200 with the code 0.
		return invalid(b.id(), "The header Mcp-Session-Id is required.")
	}
	version := r.Header.Get(protocol.HeaderVersion)
	if known := e.adapter.sessions.version(id); id != "" && known != "" && !b.opens() {
		switch {
		case version == "":
			r.Header.Set(protocol.HeaderVersion, known)
		case version != known && known >= protocol.Rev20250618:
			return invalid(b.id(), "The header MCP-Protocol-Version differs from what the session has negotiated.")
		}
	}
	return b.checkBatch()
}

// checkBatch: 2025-03-26 has batches of requests and notifications or of responses;
// initialize is never part of one (RS-117, RS-118, RS-119). That other revisions have none, the SDK knows.
func (b body) checkBatch() *refusal {
	if !b.batch {
		return nil
	}
	for _, m := range b.messages {
		if m.isRequest() != b.messages[0].isRequest() {
			return invalid(nil, "A batch has requests or responses, not both.")
		}
		if m.isRequest() && *m.Method == "initialize" {
			return invalid(nil, "initialize must not be part of a batch.")
		}
	}
	return nil
}
