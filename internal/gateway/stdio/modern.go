package stdio

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// The members of _meta that MCP 2026-07-28 knows.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaServer       = "io.modelcontextprotocol/serverInfo"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

// serveModern answers a request of MCP 2026-07-28: one message, no session, and an end
// of the connection that is an end of the request.
func (s *Server) serveModern(w http.ResponseWriter, r *http.Request, p *mcpresource.Principal) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		refuse(w, nil, http.StatusMethodNotAllowed, codeRefused, "This protocol version knows POST alone.")
		return
	}
	frames, batch := message(w, r)
	if frames == nil {
		return
	}
	f := frames[0]
	switch {
	case batch || f.isAnswer():
		refuse(w, nil, http.StatusBadRequest, codeInvalid, "A request is expected.")
		return
	case f.isNote():
		w.WriteHeader(http.StatusAccepted) // closing the stream is what cancels
		return
	}
	if no := checkModern(r.Header, f); no != nil {
		no.ID = f.ID
		no.Write(w)
		return
	}
	who := p
	if s.c.Shared {
		who = nil
	}
	h, err := s.hub(r.Context(), who)
	if err != nil {
		s.unable(w, r, f.ID, err)
		return
	}
	h.idle.enter()
	defer h.idle.leave()
	if f.Method == "tools/call" {
		tool := text(at(f.Params, "name"))
		if !agree(r.Header, at(f.Params, "arguments"), h.mirrored(r.Context(), tool)) {
			refuse(w, f.ID, http.StatusBadRequest, codeMismatch, "A Mcp-Param header does not match the arguments.")
			return
		}
	}
	(&turn{hub: h, w: w, r: r, person: person(p), call: f}).take()
}

// checkModern compares headers and body (MCP 2026-07-28, Streamable HTTP, "Request
// Headers"), and looks for what each request has to say about itself.
func checkModern(h http.Header, f frame) *gateway.Fault {
	mismatch := func(text string) *gateway.Fault {
		return &gateway.Fault{Status: http.StatusBadRequest, Code: codeMismatch, Message: text}
	}
	if h.Get("Mcp-Method") != f.Method {
		return mismatch("The header Mcp-Method is missing or does not match the body.")
	}
	key := map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}[f.Method]
	if key != "" {
		name := text(at(f.Params, key))
		if name == "" {
			return &gateway.Fault{Status: http.StatusBadRequest, Code: codeParams, Message: "params." + key + " is missing."}
		}
		if strings.TrimSpace(h.Get("Mcp-Name")) != strings.TrimSpace(name) {
			return mismatch("The header Mcp-Name is missing or does not match the body.")
		}
	}
	meta := members(at(f.Params, "_meta"))
	version := text(meta[metaVersion])
	switch {
	case version == "":
		return &gateway.Fault{Status: http.StatusBadRequest, Code: codeParams, Message: "_meta has no " + metaVersion + "."}
	case version != h.Get("Mcp-Protocol-Version"):
		return mismatch("The header Mcp-Protocol-Version does not match the body.")
	case version != modern:
		return &gateway.Fault{Status: http.StatusBadRequest, Code: codeUnsupported, Message: "This protocol version is not supported.",
			Data: map[string]any{"supported": append(slices.Clone(revisions), modern), "requested": version}}
	case members(meta[metaCapabilities]) == nil:
		return &gateway.Fault{Status: http.StatusBadRequest, Code: codeParams, Message: "_meta has no " + metaCapabilities + "."}
	}
	return nil
}

// turn is one request without a session and its answer.
type turn struct {
	hub    *hub
	w      http.ResponseWriter
	r      *http.Request
	person string
	call   frame
}

// bridged are the methods that a program of an older revision can answer, or, with a
// cache, the lists and reads among them (MCP 2026-07-28, "Caching").
var bridged = map[string]struct{ cached bool }{
	"tools/list": {true}, "tools/call": {}, "prompts/list": {true}, "prompts/get": {}, "resources/list": {true},
	"resources/templates/list": {true}, "resources/read": {true}, "completion/complete": {},
}

func (t *turn) take() {
	f := t.call
	if t.hub.modern {
		t.forward(f)
		return
	}
	if _, ok := bridged[f.Method]; ok {
		t.forward(old(f))
		return
	}
	switch f.Method {
	case "server/discover":
		t.answer(frame{ID: f.ID, Result: t.discover()})
	case "subscriptions/listen":
		t.listen()
	default:
		t.answer(failure(f.ID, codeMethod, "There is no such method."))
	}
}

// forward sends the call to the program and what comes of it to the client.
func (t *turn) forward(f frame) {
	out := newStream("", 1)
	out.ids = false
	scope := new(int)
	if _, err := t.hub.link.call(f, t.person, scope, turnSink{t, out}); err != nil {
		t.hub.server.unable(t.w, t.r, f.ID, err)
		return
	}
	// When the connection ends, so does the request; after the answer there is no call
	// left to drop.
	defer t.hub.link.drop(scope, "the client has gone")
	t.send(out)
}

// send waits for the first message, which decides the form of the response: the answer
// itself goes as one JSON document, whose status says what kind of error it is.
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
		if frames, _, err := decode(events[0]); err == nil && frames[0].isAnswer() {
			t.answer(frames[0])
			return
		}
	}
	out.serve(t.r.Context(), t.w, 0, nil)
}

// answer writes a JSON document.
func (t *turn) answer(f frame) {
	t.w.Header().Set("Content-Type", "application/json")
	t.w.Header().Set("Cache-Control", "no-store")
	t.w.WriteHeader(statusOf(f))
	t.w.Write(append(f.encode(), '\n')) // the client is gone when this fails
}

// statusOf is the HTTP status of an answer (MCP 2026-07-28, Streamable HTTP).
func statusOf(f frame) int {
	var code int
	if f.Error == nil || json.Unmarshal(at(f.Error, "code"), &code) != nil {
		return http.StatusOK
	}
	switch code {
	case codeMethod:
		return http.StatusNotFound
	case codeParams, codeMismatch, codeUnsupported, -32021:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// turnSink translates what a program of an older revision says.
type turnSink struct {
	t   *turn
	out *stream
}

func (s turnSink) deliver(f *frame, final bool) {
	if f == nil || s.t.hub.modern {
		s.out.deliver(f, final)
		return
	}
	if f.Method == "notifications/message" && at(s.t.call.Params, "_meta", metaLogLevel) == nil {
		return // logs are for those who ask for them
	}
	g := *f
	if f.isAnswer() {
		g = s.t.hub.renew(s.t.call.Method, g)
	}
	s.out.deliver(&g, final)
}

// old takes out of a request what older programs need not understand.
func old(f frame) frame {
	meta := members(at(f.Params, "_meta"))
	for name := range meta {
		if strings.HasPrefix(name, "io.modelcontextprotocol/") {
			delete(meta, name)
		}
	}
	raw, err := json.Marshal(meta)
	if err == nil && meta != nil {
		f.Params = with(f.Params, raw, "_meta")
	}
	return f
}

const codeNoResource = -32002 // before MCP 2026-07-28

// renew adds to an answer what MCP 2026-07-28 wants in it.
func (h *hub) renew(method string, f frame) frame {
	if f.Error != nil {
		var code int
		if json.Unmarshal(at(f.Error, "code"), &code) == nil && code == codeNoResource {
			f.Error = with(f.Error, json.RawMessage("-32602"), "code")
		}
		return f
	}
	add := func(value, name string) {
		if at(f.Result, name) == nil {
			f.Result = with(f.Result, json.RawMessage(value), name)
		}
	}
	add(`"complete"`, "resultType")
	if bridged[method].cached {
		add("0", "ttlMs")
		add(`"private"`, "cacheScope")
	}
	return h.sign(f)
}

// sign says which server it was.
func (h *hub) sign(f frame) frame {
	info := at(h.hello, "serverInfo")
	if info == nil {
		return f
	}
	if at(f.Result, "_meta") == nil {
		f.Result = with(f.Result, json.RawMessage("{}"), "_meta")
	}
	if at(f.Result, "_meta", metaServer) == nil {
		f.Result = with(f.Result, info, "_meta", metaServer)
	}
	return f
}

// discover is the answer to server/discover, out of the one to initialize.
func (t *turn) discover() json.RawMessage {
	hello := members(t.hub.hello)
	capabilities := members(hello["capabilities"])
	delete(capabilities, "logging") // setLevel is gone; levels come with each request
	result := map[string]any{
		"resultType": "complete", "supportedVersions": append([]string{modern}, revisions...), "capabilities": capabilities,
		"ttlMs": 0, "cacheScope": "private", "_meta": map[string]any{metaServer: hello["serverInfo"]},
	}
	if text(hello["instructions"]) != "" {
		result["instructions"] = hello["instructions"]
	}
	b, _ := json.Marshal(result) // made of JSON
	return b
}

// listener is a subscriptions/listen request to a program of an older revision.
type listener struct {
	id     json.RawMessage
	wanted map[string]bool // methods
	uris   map[string]bool
	out    *stream
	once   sync.Once
}

func (l *listener) wants(method, uri string) bool {
	if method == "notifications/resources/updated" {
		return l.uris[uri]
	}
	return l.wanted[method]
}

func (l *listener) deliver(f *frame, final bool) {
	g := *f
	if members(g.Params) == nil {
		g.Params = json.RawMessage("{}")
	}
	if at(g.Params, "_meta") == nil {
		g.Params = with(g.Params, json.RawMessage("{}"), "_meta")
	}
	g.Params = with(g.Params, l.id, "_meta", metaSubscription)
	l.out.deliver(&g, final)
}

// end says that no more will come.
func (l *listener) end() {
	l.once.Do(func() {
		raw, _ := json.Marshal(map[string]any{"resultType": "complete", "_meta": map[string]any{metaSubscription: l.id}}) // made of JSON
		l.out.deliver(&frame{ID: l.id, Result: raw}, true)
	})
}

// listenable are the lists whose changes can be listened to.
var listenable = map[string]string{
	"toolsListChanged": "notifications/tools/list_changed", "promptsListChanged": "notifications/prompts/list_changed",
	"resourcesListChanged": "notifications/resources/list_changed",
}

// listen serves subscriptions/listen: it says what can be heard, and then tells it.
func (t *turn) listen() {
	wanted := members(at(t.call.Params, "notifications"))
	l := &listener{id: t.call.ID, wanted: map[string]bool{}, uris: map[string]bool{}, out: newStream("", 1)}
	l.out.ids = false
	agreed := map[string]any{}
	for name, method := range listenable {
		if string(wanted[name]) == "true" {
			l.wanted[method], agreed[name] = true, true
		}
	}
	var uris []string
	if json.Unmarshal(wanted["resourceSubscriptions"], &uris) == nil && at(t.hub.hello, "capabilities", "resources", "subscribe") != nil {
		uris = uris[:min(len(uris), maxSubscriptions)]
		for _, uri := range uris {
			l.uris[uri] = true
			t.hub.subscribe(t.r.Context(), "resources/subscribe", uri)
		}
		agreed["resourceSubscriptions"] = uris
	}
	params, _ := json.Marshal(map[string]any{"notifications": agreed}) // made of JSON
	l.deliver(&frame{Method: "notifications/subscriptions/acknowledged", Params: params}, false)
	if !t.hub.attend(l) {
		l.end()
	}
	defer t.hub.dismiss(l)
	l.out.serve(t.r.Context(), t.w, 0, nil)
}
