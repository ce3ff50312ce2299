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

// endpoint serves both eras at one URL (RS-99, RS-137). It rejects invalid requests that the SDK
// would accept, with JSON-RPC errors.
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
		r.Header.Set("Accept", "*/*") // RFC 9110 §12.5.1: a missing header means this; the SDK rejects it
	}
	if m := b.messages[0]; e.adapter.tasks != nil && !b.batch {
		r = r.WithContext(context.WithValue(r.Context(), carriedContext{}, m.taskMembers()))
	}
	out.id = b.id()
	if !b.listens() {
		defer e.adapter.calls.enter()()
	}
	if b.modern(r) {
		r.Header.Del(protocol.HeaderLastEvent) // nothing to resume here, and the SDK rejects it
		e.stateless.ServeHTTP(out, r)
		return
	}
	e.sessions.ServeHTTP(out, r)
	if b.opens() && out.sessionless() {
		e.adapter.sessionless.Store(true)
	}
}

// serveOther serves GET and DELETE, which concern sessions.
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

// read reads the body up to the SDK's limit. The guard's limit may be larger.
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

// modern reports whether a request belongs to the stateless era, by its header or _meta. A request
// with _meta but without the header does, and is rejected for it (MCP 2026-07-28, Streamable HTTP,
// "Protocol Version Header").
func (b body) modern(r *http.Request) bool {
	if protocol.IsStateless(r.Header.Get(protocol.HeaderVersion)) {
		return true
	}
	return slices.ContainsFunc(b.messages, message.isModern)
}

// checkModern rejects requests that are invalid in 2026-07-28 but accepted by the SDK.
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
	// If a header is repeated, a proxy and the server might each use another value.
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
		r.Header.Set(protocol.HeaderMethod, *m.Method) // only requests need it, but the SDK requires it here, too
	}
	return nil
}

// isStrict reports whether a Base64 value has canonical spelling: the SDK decodes other spellings,
// too (MCP 2026-07-28, Streamable HTTP, RS-150). A value without the markers is not Base64.
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

// checkSession rejects requests that are invalid in revisions with sessions but accepted by the
// SDK.
func (e *endpoint) checkSession(b body, r *http.Request) *refusal {
	id := r.Header.Get(protocol.HeaderSession)
	if id == "" && !b.opens() && !e.adapter.sessionless.Load() { // initialize comes first: RS-70
		// Otherwise the SDK opens a session, and answers 200 with code 0.
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

// checkBatch checks that a batch contains either requests and notifications or responses, and no
// initialize (2025-03-26, RS-117, RS-118, RS-119). The SDK rejects batches of other revisions.
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
