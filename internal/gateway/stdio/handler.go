package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/internal/gateway/peers"
	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// ServeHTTP implements http.Handler. It serves Streamable HTTP in every revision.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	gateway.Sandbox(w.Header())
	p, ok := mcpresource.FromContext(r.Context())
	if !ok && !s.c.Shared {
		refuse(w, nil, http.StatusForbidden, mcp.CodeRefused, "This server needs a known caller.")
		return
	}
	switch {
	case r.Method == http.MethodPost:
		s.post(w, r, p)
	case mcp.IsStateless(r.Header.Get(mcp.HeaderVersion)):
		w.Header().Set("Allow", "POST")
		refuse(w, nil, http.StatusMethodNotAllowed, mcp.CodeRefused, "This protocol version knows POST alone.")
	case r.Method == http.MethodGet:
		s.get(w, r, p)
	case r.Method == http.MethodDelete:
		s.delete(w, r, p)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		refuse(w, nil, http.StatusMethodNotAllowed, mcp.CodeRefused, "This method is not served here.")
	}
}

func refuse(w http.ResponseWriter, id json.RawMessage, status, code int, message string) {
	gateway.Fault{Status: status, Code: code, ID: id, Message: message}.Write(w)
}

// unable writes the error if no program is available. The guard answers for a request that was
// ended.
func (s *Server) unable(w http.ResponseWriter, r *http.Request, id json.RawMessage, err error) {
	if ended := context.Cause(r.Context()); ended != nil {
		s.c.Logger.DebugContext(r.Context(), "request ended", "error", ended)
		return
	}
	s.c.Logger.WarnContext(r.Context(), "MCP server not started, or not asked", "command", s.c.Command[0], "error", err)
	f := gateway.Fault{
		Status: http.StatusBadGateway, Code: mcp.CodeInternal, ID: id, Message: "The MCP server cannot be started.",
	}
	var h held
	switch {
	case errors.As(err, &h):
		f.Status, f.Message, f.Retry = http.StatusServiceUnavailable,
			"The MCP server has failed and is started again soon.", int(h.wait/time.Second)+1
	case errors.Is(err, errFull):
		f.Status, f.Message, f.Retry = http.StatusServiceUnavailable, "Too many sessions are open.", 30
	case errors.Is(err, errPending), errors.Is(err, errBusy):
		f.Status, f.Message, f.Retry = http.StatusServiceUnavailable, "Too many requests are waiting.", 1
	case errors.Is(err, errClosed):
		f.Status, f.Message, f.Retry = http.StatusServiceUnavailable, "The gateway is stopping.", 1
	case errors.Is(err, errEnded):
		f.Status, f.Message = http.StatusBadGateway, "The MCP server has ended."
	}
	f.Write(w)
}

// accepts reports whether a client accepts a media type.
func accepts(r *http.Request, kind string) bool {
	general, _, _ := strings.Cut(kind, "/")
	for _, line := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(line, ",") {
			part, _, _ = strings.Cut(part, ";")
			if part = strings.ToLower(strings.TrimSpace(part)); part == kind || part == general+"/*" || part == "*/*" {
				return true
			}
		}
	}
	return false
}

type posted struct {
	body   []byte
	frames []frame
	batch  bool
}

// message reads the body of a POST. It returns nil if it has written an error.
func message(w http.ResponseWriter, r *http.Request) *posted {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, nil, http.StatusUnsupportedMediaType, mcp.CodeRefused, "Content-Type must be application/json.")
		return nil
	}
	// RFC 9110 §12.5.1: without Accept a client accepts anything.
	if r.Header.Get("Accept") != "" && (!accepts(r, "application/json") || !accepts(r, "text/event-stream")) {
		refuse(w, nil, http.StatusNotAcceptable, mcp.CodeRefused,
			"Accept must contain application/json and text/event-stream.")
		return nil
	}
	m := &posted{}
	var err error
	if m.body, err = io.ReadAll(r.Body); err == nil { // the guard has limited its size
		m.frames, m.batch, err = decode(m.body)
	}
	if err != nil || slices.ContainsFunc(m.frames, func(f frame) bool { return f.isCall() && !f.wholeID() }) {
		refuse(w, nil, http.StatusBadRequest, mcp.CodeParse, "The body is not a JSON-RPC message.")
		return nil
	}
	return m
}

func (s *Server) post(w http.ResponseWriter, r *http.Request, p *mcpresource.Principal) {
	m := message(w, r)
	if m == nil {
		return
	}
	frames, batch := m.frames, m.batch
	if isModern(r.Header, frames) {
		s.postModern(w, r, p, frames, batch)
		return
	}
	if r.Header.Get(mcp.HeaderSession) == "" {
		s.initialize(w, r, p, frames, batch)
		return
	}
	x := s.session(w, r, p, m)
	if x == nil {
		return
	}
	x.idle.enter()
	defer x.idle.leave()
	var calls, answers int
	for _, f := range frames {
		if f.isCall() {
			calls++
		}
		if f.isAnswer() {
			answers++
		}
		if f.Method == "initialize" {
			refuse(w, f.ID, http.StatusBadRequest, mcp.CodeInvalidRequest, "The session is initialized.")
			return
		}
	}
	if version := x.negotiated(); batch && version >= mcp.Rev20250618 { // RS-121
		refuse(w, nil, http.StatusBadRequest, mcp.CodeInvalidRequest, "There are no batches in MCP "+version+".")
		return
	}
	if answers > 0 && answers < len(frames) {
		refuse(w, nil, http.StatusBadRequest, mcp.CodeInvalidRequest, "A batch has requests or responses, not both.")
		return
	}
	if calls == 0 {
		if err := x.forward(frames, nil); err != nil {
			s.unable(w, r, nil, err)
			return
		}
		w.WriteHeader(http.StatusAccepted) // without a body: RS-69, RS-100
		return
	}
	x.serve(w, r, frames, calls)
}

// session returns the session that a request names. m is the message of the request. It returns nil
// if it has written an error, or if another replica has answered.
func (s *Server) session(w http.ResponseWriter, r *http.Request, p *mcpresource.Principal, m *posted) *session {
	id := r.Header.Get(mcp.HeaderSession)
	if id == "" {
		refuse(w, nil, http.StatusBadRequest, mcp.CodeRefused, "The header Mcp-Session-Id is missing.")
		return nil
	}
	x := s.find(id, p)
	switch {
	case x == nil && s.passOn(w, r, id, m):
		return nil
	case x == nil:
		refuse(w, nil, http.StatusNotFound, mcp.CodeRefused, "Session not found.") // RS-110
		return nil
	}
	// MCP 2025-06-18, "Protocol Version Header" (RS-122, RS-124).
	if v, agreed := r.Header.Get(mcp.HeaderVersion), x.negotiated(); v != "" && agreed != "" && v != agreed {
		refuse(w, nil, http.StatusBadRequest, mcp.CodeRefused, "This is not the protocol version of the session.")
		return nil
	}
	return x
}

// passOn lets the replica that holds the session answer (RU-08). It reports whether another replica
// does. A forwarded request is not forwarded again.
func (s *Server) passOn(w http.ResponseWriter, r *http.Request, id string, m *posted) bool {
	if s.site == nil || peers.Passed(r.Context()) {
		return false
	}
	to := peers.Request{Holder: s.site.Elsewhere(id)}
	if to.Holder == "" {
		return false
	}
	if m != nil {
		to.Body = m.body
		for _, f := range m.frames {
			if f.isCall() {
				to.Calls = append(to.Calls, f.ID)
			}
		}
	}
	s.site.Forward(w, r, to)
	return true
}

// initialize opens a session (RS-70). The message must not be part of a batch (MCP 2025-03-26,
// Lifecycle, RS-118).
func (s *Server) initialize(
	w http.ResponseWriter, r *http.Request, p *mcpresource.Principal, frames []frame, batch bool,
) {
	f := frames[0]
	if batch || !f.isCall() || f.Method != "initialize" {
		refuse(w, f.ID, http.StatusBadRequest, mcp.CodeRefused,
			"A session begins with initialize; the header Mcp-Session-Id is missing.")
		return
	}
	x, err := s.begin(p)
	if err != nil {
		s.unable(w, r, f.ID, err)
		return
	}
	x.idle.enter()
	defer x.idle.leave()
	w.Header().Set(mcp.HeaderSession, x.id)
	x.serve(w, r, frames, 1)
	if x.negotiated() == "" {
		x.close() // the program has refused, or the client did not wait
	}
}

// serve sends calls to the program and streams the answers to the client. A client that disconnects
// cancels nothing: it may come back for the rest.
func (x *session) serve(w http.ResponseWriter, r *http.Request, frames []frame, calls int) {
	out := x.open(calls) // answers never go to the session's own stream (RS-105)
	until := out.attach(r.Context())
	defer out.detach(until)
	if err := x.forward(frames, out); err != nil {
		out.close()
		w.Header().Del(mcp.HeaderSession)
		x.server.unable(w, r, frames[0].ID, err)
		return
	}
	out.serve(r.Context(), w, 0, until)
}

// forward sends the client's messages to the program one at a time. A batch of MCP 2025-03-26 has
// no other meaning, and many programs do not support batches.
func (x *session) forward(frames []frame, out *stream) error {
	for i, f := range frames {
		var err error
		switch {
		case f.isAnswer():
			err = x.reply(f)
		case f.isNote():
			err = x.notify(f)
		case x.hub != nil && x.local(f, out):
		default:
			_, err = x.link.call(f, person(x.person), x, out)
		}
		switch {
		case err != nil && i == 0:
			return err
		case err != nil && f.isCall():
			answer := failure(f.ID, mcp.CodeInternal, "The MCP server cannot be asked now.")
			out.deliver(&answer, true)
		}
	}
	return nil
}

func (x *session) notify(f frame) error {
	switch {
	case f.Method == "notifications/cancelled":
		x.link.cancel(f, x)
		return nil
	case x.hub != nil && f.Method == "notifications/initialized":
		return nil // the gateway has sent its own
	}
	return x.link.send(f)
}

// local handles requests that must not reach a shared program.
func (x *session) local(f frame, out *stream) bool {
	uri := text(at(f.Params, "uri"))
	if strings.HasPrefix(f.Method, "tasks/") {
		answer := failure(f.ID, mcp.CodeMethodNotFound, "There are no tasks in a process that callers share.")
		out.deliver(&answer, true)
		return true
	}
	switch f.Method {
	case "initialize":
		hello := x.hub.welcome()
		// The gateway speaks one revision with the program. Older revisions are subsets of it.
		if asked := text(at(f.Params, "protocolVersion")); slices.Contains(mcp.SessionRevisions(), asked) {
			hello = with(hello, at(f.Params, "protocolVersion"), "protocolVersion")
		}
		answer := frame{ID: f.ID, Result: hello}
		x.answered(f.Method, answer)
		out.deliver(&answer, true)
		return true
	case "resources/subscribe":
		x.mu.Lock()
		if len(x.subscribed) < maxSubscriptions {
			x.subscribed[uri] = true
		}
		x.mu.Unlock()
	case "resources/unsubscribe":
		x.mu.Lock()
		delete(x.subscribed, uri)
		x.mu.Unlock()
		if x.hub.subscribed(uri) {
			answer := frame{ID: f.ID, Result: json.RawMessage("{}")}
			out.deliver(&answer, true)
			return true
		}
	}
	return false
}

const maxSubscriptions = 1000

// get opens a session's own stream (RS-104), or resumes any stream, including one of a POST (MCP
// 2025-03-26, Streamable HTTP, "Resumability and Redelivery", RS-129). It replaces the stream's
// earlier reader, which a proxy may hold open long after its client has gone.
func (s *Server) get(w http.ResponseWriter, r *http.Request, p *mcpresource.Principal) {
	if !accepts(r, "text/event-stream") {
		refuse(w, nil, http.StatusNotAcceptable, mcp.CodeRefused, "Accept must contain text/event-stream.")
		return
	}
	x := s.session(w, r, p, nil)
	if x == nil {
		return
	}
	x.idle.enter()
	defer x.idle.leave()
	out, from := x.own, -1
	if last := r.Header.Get(mcp.HeaderLastEvent); last != "" {
		id, n, ok := position(last)
		if out = x.stream(id); !ok || out == nil {
			// 404 would mean that the session does not exist.
			refuse(w, nil, http.StatusBadRequest, mcp.CodeRefused, "These events are no longer kept.")
			return
		}
		from = n + 1
	}
	until := out.attach(r.Context())
	defer out.detach(until)
	if from < 0 {
		from = out.unsent()
	}
	out.serve(r.Context(), w, from, until)
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request, p *mcpresource.Principal) {
	if x := s.session(w, r, p, nil); x != nil {
		x.close()
		w.WriteHeader(http.StatusNoContent)
	}
}
