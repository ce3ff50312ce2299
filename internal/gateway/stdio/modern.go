package stdio

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// isModern reports whether a POST uses the stateless revision, according to its header or its body.
// A request with the version only in its body is refused, for this reason (MCP 2026-07-28,
// Streamable HTTP, "Protocol Version Header").
func isModern(h http.Header, frames []frame) bool {
	return mcp.IsStateless(h.Get(mcp.HeaderVersion)) || slices.ContainsFunc(frames, func(f frame) bool {
		return mcp.IsStateless(text(at(f.Params, "_meta", mcp.MetaVersion)))
	})
}

// postModern answers a request of MCP 2026-07-28. It is one message without a session, and closing
// the connection cancels it.
func (s *Server) postModern(
	w http.ResponseWriter, r *http.Request, p *mcpresource.Principal, frames []frame, batch bool,
) {
	f := frames[0]
	switch {
	case batch || f.isAnswer(): // RS-137
		refuse(w, nil, http.StatusBadRequest, mcp.CodeInvalidRequest, "A request is expected.")
		return
	case f.isNote():
		w.WriteHeader(http.StatusAccepted) // only closing the stream cancels
		return
	}
	version := r.Header.Get(mcp.HeaderVersion)
	if !unknown(version) { // the required headers of other revisions are unknown
		var no *gateway.Fault
		if version, no = checkModern(r.Header, f); no != nil {
			no.ID = f.ID
			no.Write(w)
			return
		}
	}
	h, err := s.modernHub(p)
	switch {
	case errors.Is(err, errLegacy):
		unsupported(f.ID, version, mcp.SessionRevisions()).Write(w)
		return
	case err != nil:
		s.unable(w, r, f.ID, err)
		return
	case version != mcp.Rev20260728:
		unsupported(f.ID, version, append(mcp.SessionRevisions(), mcp.Rev20260728)).Write(w)
		return
	}
	h.idle.enter()
	defer h.idle.leave()
	if f.Method == "tools/call" {
		tool := text(at(f.Params, "name"))
		if !agree(r.Header, at(f.Params, "arguments"), h.mirrored(r.Context(), tool)) {
			refuse(w, f.ID, http.StatusBadRequest, mcp.CodeHeaderMismatch,
				"A Mcp-Param header does not match the arguments.")
			return
		}
	}
	(&turn{hub: h, w: w, r: r, person: person(p)}).forward(f)
}

// unknown reports whether a header names a revision that does not exist.
func unknown(version string) bool { return mcp.IsStateless(version) && version != mcp.Rev20260728 }

// unsupported returns UnsupportedProtocolVersionError (MCP 2026-07-28, Versioning, RS-142). If it
// lists only older revisions, clients that support one begin with initialize.
func unsupported(id json.RawMessage, version string, supported []string) *gateway.Fault {
	return &gateway.Fault{
		Status: http.StatusBadRequest, Code: mcp.CodeUnsupportedVersion, ID: id,
		Message: "This protocol version is not supported.",
		Data:    map[string]any{"supported": supported, "requested": version},
	}
}

// checkModern checks that headers and body match (MCP 2026-07-28, Streamable HTTP, "Request
// Headers"), and that the request has the required _meta. It returns the protocol version of the
// request.
func checkModern(h http.Header, f frame) (version string, no *gateway.Fault) {
	bad := func(code int, text string) (string, *gateway.Fault) {
		return "", &gateway.Fault{Status: http.StatusBadRequest, Code: code, Message: text}
	}
	if h.Get(mcp.HeaderMethod) != f.Method {
		return bad(mcp.CodeHeaderMismatch, "The header Mcp-Method is missing or does not match the body.")
	}
	key := map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}[f.Method]
	if key != "" {
		name := text(at(f.Params, key))
		if name == "" {
			return bad(mcp.CodeInvalidParams, "params."+key+" is missing.")
		}
		if strings.TrimSpace(h.Get(mcp.HeaderName)) != strings.TrimSpace(name) {
			return bad(mcp.CodeHeaderMismatch, "The header Mcp-Name is missing or does not match the body.")
		}
	}
	meta := members(at(f.Params, "_meta"))
	switch version = text(meta[mcp.MetaVersion]); {
	case version == "": // RS-138, like the case of capabilities below
		return bad(mcp.CodeInvalidParams, "_meta has no "+mcp.MetaVersion+".")
	case version != h.Get(mcp.HeaderVersion): // RS-144
		return bad(mcp.CodeHeaderMismatch, "The header MCP-Protocol-Version is missing or does not match the body.")
	case version == mcp.Rev20260728 && members(meta[mcp.MetaCapabilities]) == nil:
		return bad(mcp.CodeInvalidParams, "_meta has no "+mcp.MetaCapabilities+".")
	}
	return version, nil
}

// turn is one sessionless request and its answer.
type turn struct {
	hub    *hub
	w      http.ResponseWriter
	r      *http.Request
	person string
}

// forward sends the call to the program and streams the answer to the client.
func (t *turn) forward(f frame) {
	out := newStream("", 1, &t.hub.server.c)
	out.ids = false
	scope := new(int)
	if _, err := t.hub.link.call(f, t.person, scope, out); err != nil {
		t.hub.server.unable(t.w, t.r, f.ID, err)
		return
	}
	// The end of the connection ends the request (RS-164). After the answer, drop finds no call.
	defer t.hub.link.drop(scope, "the client has gone")
	t.send(out)
}

// send waits for the first message, which decides the form of the response. If it is the answer,
// the response is one JSON document whose status depends on the error code.
func (t *turn) send(out *stream) {
	events, _, news := out.after(0)
	for len(events) == 0 && news != nil {
		select {
		case <-news:
		case <-t.r.Context().Done():
			return
		}
		events, _, news = out.after(0)
	}
	if len(events) == 1 && news == nil {
		text, err := events[0].shownTo(t.r.Context(), out.c.Shows)
		if err != nil {
			return // unreachable: it was parsed from JSON
		}
		if frames, _, err := decode(text); err == nil && frames[0].isAnswer() {
			t.answer(frames[0])
			return
		}
	}
	out.serve(t.r.Context(), t.w, 0, nil)
}

func (t *turn) answer(f frame) {
	t.w.Header().Set("Content-Type", "application/json")
	t.w.Header().Set("Cache-Control", "no-store")
	t.w.WriteHeader(statusOf(f))
	t.w.Write(append(f.encode(), '\n')) // fails only if the client is gone
}

// statusOf returns the HTTP status of an answer (MCP 2026-07-28, Streamable HTTP).
func statusOf(f frame) int {
	var code int
	if f.Error == nil || json.Unmarshal(at(f.Error, "code"), &code) != nil {
		return http.StatusOK
	}
	switch code {
	case mcp.CodeMethodNotFound: // RS-74, RS-159
		return http.StatusNotFound
	case mcp.CodeInvalidParams, mcp.CodeHeaderMismatch, mcp.CodeUnsupportedVersion, mcp.CodeMissingCapability:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
