package mcpresource

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const clearanceURL = "https://auth.example.com/clearance/c1"

// asked is a Clearances with preset answers that records the demands.
type asked struct {
	mu      sync.Mutex
	answers []oauth.Clearance // the last one repeats
	err     error
	demands []oauth.ClearanceDemand
	tokens  []string
}

func (a *asked) Clear(ctx context.Context, token string, d oauth.ClearanceDemand) (oauth.Clearance, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p, ok := FromContext(ctx); !ok || p.Subject == "" {
		return oauth.Clearance{}, errors.New("the caller is missing")
	}
	a.demands, a.tokens = append(a.demands, d), append(a.tokens, token)
	if a.err != nil {
		return oauth.Clearance{}, a.err
	}
	c := a.answers[0]
	if len(a.answers) > 1 {
		a.answers = a.answers[1:]
	}
	return c, nil
}

var (
	waiting = oauth.Clearance{ID: "c1", URL: clearanceURL}
	given   = oauth.Clearance{ID: "c1", Cleared: true}
	denied  = oauth.Clearance{ID: "c1", Refused: true}
)

// clearanceRig returns a guard that requires approval for the tools erase and give.
func clearanceRig(t *testing.T, a *asked, change func(*Config)) (*rig, *[]CallEvent) {
	t.Helper()
	var calls []CallEvent
	r := newRig(t, func(c *Config) {
		rules := c.Policy.(*Rules)
		rules.Tools["erase"], rules.Tools["give"] = []string{"files:write"}, nil
		rules.Clearances = map[string]Clearance{
			"erase": {By: oauth.ClearanceByPerson},
			"give": {
				By: oauth.ClearanceByOther, Approvers: []string{"olga", "otto"},
				Authentication: Authentication{ACR: []string{"phr"}, MaxAge: time.Minute},
			},
		}
		c.Clearances, c.Calls = a, func(_ context.Context, e CallEvent) { calls = append(calls, e) }
		if change != nil {
			change(c)
		}
	})
	r.approvals.poll, r.approvals.wait = time.Millisecond, time.Minute
	return r, &calls
}

type rpcAnswer struct {
	ID    int
	Error struct {
		Code    int
		Message string
		Data    map[string]any
	}
	Result json.RawMessage
}

func readAnswer(t *testing.T, body string) (out rpcAnswer) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return out
}

// TestClearanceGiven: an approved call proceeds, once, and its audit entry has the id.
func TestClearanceGiven(t *testing.T) {
	a := &asked{answers: []oauth.Clearance{given}}
	r, calls := clearanceRig(t, a, nil)
	if w := r.call("writer", tool("erase")); w.Code != 200 || len(r.seen) != 1 {
		t.Fatalf("RS-217: a call that was cleared: %d %s", w.Code, w.Body)
	}
	d := a.demands[0]
	if len(a.demands) != 1 || d.Resource != resource || d.Tool != "erase" || string(d.Arguments) != `{"a":1}` ||
		d.By != "person" || a.tokens[0] != "writer" {
		t.Errorf("RS-217: asked %+v by %q", a.demands, a.tokens)
	}
	if e := (*calls)[0]; e.Clearance != "c1" || e.Outcome != OutcomeOK {
		t.Errorf("RS-217: the call was reported as %+v", e)
	}
	if e := r.events[len(r.events)-1]; e.Outcome != OutcomeAllowed {
		t.Errorf("the decision was reported as %v", e.Outcome)
	}
	// The other requirements are passed on.
	if w := r.call("alice", tool("give")); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	d = a.demands[1]
	if d.By != "other" || strings.Join(d.Approvers, " ") != "olga otto" || strings.Join(d.ACR, " ") != "phr" ||
		d.MaxAge != time.Minute {
		t.Errorf("RS-217: asked %+v", d)
	}
	// No approval is requested for other tools or for tools/list.
	r.call("alice", tool("read"))
	r.call("alice", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if len(a.demands) != 2 {
		t.Errorf("asked about %+v", a.demands[2:])
	}
}

// TestClearanceLast: approval is requested only for calls that are otherwise allowed.
func TestClearanceLast(t *testing.T) {
	a := &asked{answers: []oauth.Clearance{given}}
	r, _ := clearanceRig(t, a, func(c *Config) {
		c.Check = func(_ context.Context, p *Principal, _ Operation) error {
			if p.Subject == "root" {
				return errors.New("another person's")
			}
			return nil
		}
		c.Limits.Tools = map[string]Rate{"erase": {PerSecond: .001, Burst: 1}}
	})
	for _, tt := range []struct {
		name, token string
		status      int
		header      []string
	}{
		{"no token", "nonsense", 401, nil},
		{"too little scope", "alice", 403, nil},
		{"not the caller's", "admin", 403, nil},
		{"a session of nobody", "writer", 404, []string{"Mcp-Session-Id", strings.Repeat("x", maxSessionID+1)}},
		{"too often", "writer", 429, nil},
	} {
		if w := r.call(tt.token, tool("erase"), tt.header...); w.Code != tt.status || len(a.demands) != 0 {
			t.Errorf("RS-217 %s: %d, asked %v: %s", tt.name, w.Code, a.demands, w.Body)
		}
	}
}

// TestClearanceChallenge: a client that cannot show links gets a challenge that leads to the page,
// and a link as text.
func TestClearanceChallenge(t *testing.T) {
	a := &asked{answers: []oauth.Clearance{waiting}}
	n := &noted{reference: "K7PX2M4Q"}
	r, calls := clearanceRig(t, a, func(c *Config) { c.Decisions = n })
	w := r.call("writer", tool("erase"))
	const challenge = `Bearer error="insufficient_scope", error_description="A person has to approve this call.", ` +
		`scope="mcp files:write clearance:c1", resource_metadata="` + prmURL + `"`
	if got := w.Header().Get("Www-Authenticate"); w.Code != 403 || got != challenge || len(r.seen) != 0 {
		t.Errorf("RS-217: %d %s", w.Code, got)
	}
	answer := readAnswer(t, w.Body.String())
	if answer.ID != 7 || answer.Error.Code != mcp.CodeRefused || answer.Error.Message !=
		"A person has to approve this call. Open "+clearanceURL+" to do so, then call again. Reference: K7PX2M4Q." ||
		answer.Error.Data["error"] != "insufficient_scope" ||
		answer.Error.Data["scope"] != "mcp files:write clearance:c1" {
		t.Errorf("RS-217: %s", w.Body)
	}
	if e := (*calls)[0]; e.Outcome != OutcomeClearanceRequired || e.Clearance != "c1" || e.Status != 403 {
		t.Errorf("RS-217: the call was reported as %+v", e)
	}
	if d := n.refused[0]; d.Outcome != "clearance_required" || d.Scope != "mcp files:write clearance:c1" {
		t.Errorf("RS-217: the decision was %+v", d)
	}
	// A client of 2026-07-28 adds to its scopes.
	w = r.call("writer", tool("erase"), mcp.HeaderVersion, mcp.Rev20260728)
	if got := w.Header().Get("Www-Authenticate"); !strings.Contains(got, `scope="mcp files:write clearance:c1"`) {
		t.Errorf("RS-217: %s", got)
	}
}

// TestClearanceRefused: denied calls, and calls that cannot be approved, are refused without a
// link.
func TestClearanceRefused(t *testing.T) {
	tooLong := oauth.NewError(oauth.InvalidRequest, "They are longer than 8 KiB.")
	for _, tt := range []struct {
		name    string
		a       *asked
		body    string
		status  int
		text    string
		outcome Outcome
	}{
		{"by the person", &asked{answers: []oauth.Clearance{denied}}, tool("erase"), 403,
			"This call was denied by the person who was asked.", OutcomeClearanceRefused},
		{"too long to show", &asked{err: tooLong}, tool("erase"), 403,
			"A person has to approve this call, and cannot be asked. They are longer than 8 KiB.", OutcomeClearanceRefused},
		{"a program has no person", &asked{err: oauth.NewError(oauth.AccessDenied, "secret")}, tool("erase"), 403,
			"A person has to approve this call, and no person can be asked.", OutcomeClearanceRefused},
		{"too many wait", &asked{err: oauth.NewError(oauth.SlowDown, "secret")}, tool("erase"), 429,
			"Too many calls wait for a person.", OutcomeLimited},
		{"the token was revoked meanwhile", &asked{err: oauth.NewError(oauth.InvalidGrant, "")}, tool("erase"), 401,
			"The access token is not valid.", OutcomeInvalidToken},
		{"an outage", &asked{err: errors.New("dial tcp: secret")}, tool("erase"), 503,
			"This cannot be checked now.", OutcomeUnavailable},
		{"a server that fails", &asked{err: oauth.NewError(oauth.ServerError, "secret")}, tool("erase"), 503,
			"This cannot be checked now.", OutcomeUnavailable},
		{"an answer without a link", &asked{answers: []oauth.Clearance{{ID: "c1"}}}, tool("erase"), 503,
			"This cannot be checked now.", OutcomeUnavailable},
		{"an id that would break a header", &asked{answers: []oauth.Clearance{{ID: "c\"1", Cleared: true}}},
			tool("erase"), 503, "This cannot be checked now.", OutcomeUnavailable},
		{"in a batch", &asked{answers: []oauth.Clearance{given}}, "[" + tool("erase") + "," + tool("read") + "]", 403,
			"A call that a person has to approve must be a request of its own, with an id, and not part of a batch.",
			OutcomeClearanceRefused},
		{"alone in a batch", &asked{answers: []oauth.Clearance{given}}, "[" + tool("erase") + "]", 403,
			"A call that a person has to approve must be a request of its own, with an id, and not part of a batch.",
			OutcomeClearanceRefused},
		{"as a notification", &asked{answers: []oauth.Clearance{given}},
			`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"erase"}}`, 403,
			"A call that a person has to approve must be a request of its own, with an id, and not part of a batch.",
			OutcomeClearanceRefused},
		{"with an id that is null", &asked{answers: []oauth.Clearance{given}},
			`{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"erase"}}`, 403,
			"A call that a person has to approve must be a request of its own, with an id, and not part of a batch.",
			OutcomeClearanceRefused},
	} {
		t.Run("RS-217 "+tt.name, func(t *testing.T) {
			r, _ := clearanceRig(t, tt.a, nil)
			w := r.call("writer", tt.body)
			if got := readAnswer(t, w.Body.String()).Error.Message; w.Code != tt.status || got != tt.text {
				t.Errorf("got %d %q", w.Code, got)
			}
			said := w.Body.String()
			if len(r.seen) != 0 || strings.Contains(said, "secret") || strings.Contains(said, "http") {
				t.Errorf("reached %v, said %s", r.seen, said)
			}
			if got := r.events[len(r.events)-1].Outcome; got != tt.outcome {
				t.Errorf("reported %v", got)
			}
		})
	}
}

const (
	initializeLinks = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"x","version":"1"}}}`
	initializePlain = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{"elicitation":{}},"clientInfo":{"name":"x","version":"1"}}}`
)

// TestClearanceBySession: capabilities declared when a session was opened apply in it, for its
// revision only.
func TestClearanceBySession(t *testing.T) {
	a := &asked{answers: []oauth.Clearance{waiting}}
	binder := NewMemorySessions(10)
	shared := func(c *Config) { c.Sessions = binder }
	r, _ := clearanceRig(t, a, shared)
	replica, _ := clearanceRig(t, a, shared)
	open := func(id, body string) {
		r.next = func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Mcp-Session-Id", id) }
		if w := r.call("writer", body); w.Code != 200 {
			t.Fatalf("initialize: %d %s", w.Code, w.Body)
		}
	}
	open("links", initializeLinks)
	open("plain", initializePlain)
	for _, on := range []*rig{r, replica} {
		w := on.call("writer", tool("erase"), "Mcp-Session-Id", "links", mcp.HeaderVersion, mcp.Rev20251125)
		answer := readAnswer(t, w.Body.String())
		elicitations, _ := answer.Error.Data["elicitations"].([]any)
		if w.Code != 200 || answer.ID != 7 || answer.Error.Code != mcp.CodeURLElicitationNeeded ||
			len(elicitations) != 1 {
			t.Fatalf("RS-217 RS-125: %d %s", w.Code, w.Body)
		}
		e := elicitations[0].(map[string]any)
		if e["mode"] != "url" || e["url"] != clearanceURL || e["elicitationId"] != "c1" ||
			e["message"] != "You have to approve this call of the tool erase. Please look at it in your browser." {
			t.Errorf("RS-217: %v", e)
		}
	}
	for name, header := range map[string][]string{
		"a client that shows none": {"Mcp-Session-Id", "plain", mcp.HeaderVersion, mcp.Rev20251125},
		"an older revision":        {"Mcp-Session-Id", "links", mcp.HeaderVersion, mcp.Rev20250618},
		"no session":               {mcp.HeaderVersion, mcp.Rev20251125},
		"a session that is new":    {"Mcp-Session-Id", "other", mcp.HeaderVersion, mcp.Rev20251125},
	} {
		if w := r.call("writer", tool("erase"), header...); w.Code != 403 ||
			!strings.Contains(w.Header().Get("Www-Authenticate"), "clearance:c1") {
			t.Errorf("RS-217 %s: %d %s", name, w.Code, w.Body)
		}
	}
}

// TestClearanceWithoutSession: at a server without sessions, the client's latest initialize
// applies.
func TestClearanceWithoutSession(t *testing.T) {
	r, _ := clearanceRig(t, &asked{answers: []oauth.Clearance{waiting}}, nil)
	erase := func() int {
		return r.call("writer", tool("erase"), mcp.HeaderVersion, mcp.Rev20251125).Code
	}
	for _, tt := range []struct {
		initialize string
		want       int
	}{{"", 403}, {initializeLinks, 200}, {initializePlain, 403}} {
		if tt.initialize != "" {
			r.call("writer", tt.initialize)
		}
		if got := erase(); got != tt.want {
			t.Errorf("RS-217 RS-125 after %q: got %d, want %d", tt.initialize, got, tt.want)
		}
	}
	if w := r.call("bob", initializeLinks); w.Code != 200 {
		t.Fatalf("initialize: %d", w.Code)
	}
	if got := erase(); got != 403 {
		t.Errorf("RS-217 after the initialize of another person: got %d", got)
	}
}

// modern returns a 2026-07-28 call by a client that shows links, with more added to its params.
func modern(more string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"erase","arguments":{"a":1},` + more +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}}}}}`
}

func (r *rig) modern(more string) (code int, body string) {
	w := r.call("writer", modern(more), mcp.HeaderVersion, mcp.Rev20260728)
	return w.Code, w.Body.String()
}

// TestClearanceQuestion: a client of 2026-07-28 gets a question and calls again with the answer,
// which the MCP server does not see.
func TestClearanceQuestion(t *testing.T) {
	a := &asked{answers: []oauth.Clearance{waiting}}
	r, _ := clearanceRig(t, a, nil)
	code, body := r.modern("")
	const want = `{"jsonrpc":"2.0","id":7,"result":{"inputRequests":{"mcp-authd-clearance":{"method":"elicitation/create",` +
		`"params":{"message":"You have to approve this call of the tool erase. Please look at it in your browser.",` +
		`"mode":"url","url":"` + clearanceURL + `"}}},"resultType":"input_required"}}`
	if code != 200 || body != want {
		t.Fatalf("RS-217 RS-178: %d %s", code, body)
	}
	accept := `"inputResponses":{"mcp-authd-clearance":{"action":"accept"}},`
	// While the user looks at the page, the call waits.
	a.answers, a.demands = []oauth.Clearance{waiting, waiting, waiting, given}, nil
	if code, body = r.modern(accept); code != 200 || len(r.bodies) != 1 || r.bodies[0] != modern("") ||
		len(a.demands) != 4 {
		t.Fatalf("RS-217: %d %s, the server saw %s", code, body, r.bodies)
	}
	// The wait ends, and the question is not repeated.
	a.answers, r.approvals.wait = []oauth.Clearance{waiting}, 50*time.Millisecond
	if code, body = r.modern(accept); code != 200 || readAnswer(t, body).Error.Message !=
		"This call has not been approved yet. Open "+clearanceURL+" to do so, then call again." {
		t.Errorf("RS-217: %d %s", code, body)
	}
	a.answers, r.approvals.wait = []oauth.Clearance{waiting, denied}, time.Minute
	if code, body = r.modern(accept); code != 403 || !strings.Contains(body, "denied by the person") {
		t.Errorf("RS-217: %d %s", code, body)
	}
	a.demands = nil
	for _, action := range []string{"decline", "cancel"} {
		code, body = r.modern(`"inputResponses":{"mcp-authd-clearance":{"action":"` + action + `"}},`)
		if code != 403 || !strings.Contains(body, "the link was declined") || len(a.demands) != 0 {
			t.Errorf("RS-217 %s: %d %s", action, code, body)
		}
	}
	for _, wrong := range []string{
		`"inputResponses":{"mcp-authd-clearance":{"action":"approve"}},`,
		`"inputResponses":{"mcp-authd-clearance":true},`,
		`"inputResponses":{"mcp-authd-clearance":{"action":"accept","Action":"decline"}},`,
		`"inputResponses":{"mcp-authd-clearance":{"action":"accept"},"mcp-authd-clearance":{"action":"accept"}},`,
		`"requestState":"mcp-authd-clearance:###",`,
		`"requestState":"mcp-authd-clearance:eyJzIjoxfQ`, // cut off
	} {
		if code, body = r.modern(wrong); code != 400 {
			t.Errorf("RS-217 %s: %d %s", wrong, code, body)
		}
	}
	if len(r.bodies) != 1 {
		t.Errorf("RS-217: the server saw %s", r.bodies[1:])
	}
}

// TestClearanceKeepsAnswers: a tool with its own questions gets their answers, even with the
// guard's question in between.
func TestClearanceKeepsAnswers(t *testing.T) {
	a := &asked{answers: []oauth.Clearance{waiting}}
	r, _ := clearanceRig(t, a, nil)
	const own = `"inputResponses":{"sure":{"action":"accept","content":{"a":"\u00e9\\"}}},"requestState":"st\"1",`
	code, body := r.modern(own)
	var result struct {
		RequestState  string
		InputRequests map[string]any
	}
	if err := json.Unmarshal(readAnswer(t, body).Result, &result); code != 200 || err != nil ||
		!strings.HasPrefix(result.RequestState, clearanceState) || len(result.InputRequests) != 1 {
		t.Fatalf("RS-217: %d %s", code, body)
	}
	a.answers = []oauth.Clearance{given}
	state, _ := json.Marshal(result.RequestState)
	r.modern(`"inputResponses":{"mcp-authd-clearance":{"action":"accept"}},"requestState":` + string(state) + `,`)
	if len(r.bodies) != 1 || r.bodies[0] != modern(own) {
		t.Errorf("RS-217: the server saw %s", r.bodies)
	}
	// A state that the guard did not create is forwarded unchanged.
	r.modern(own)
	if len(r.bodies) != 2 || r.bodies[1] != modern(own) {
		t.Errorf("RS-217: the server saw %s", r.bodies)
	}
}

// TestClearanceCrowd: the number of waiting calls of one user is limited.
func TestClearanceCrowd(t *testing.T) {
	a := &asked{answers: []oauth.Clearance{waiting}}
	r, _ := clearanceRig(t, a, nil)
	r.approvals.waiting.Add(people(r.now)["writer"].Person(), maxWaiting)
	r.approvals.wait = 2 * time.Second
	code, body := r.modern(`"inputResponses":{"mcp-authd-clearance":{"action":"accept"}},`)
	if code != 200 || !strings.Contains(body, "has not been approved yet") || len(a.demands) != 1 {
		t.Errorf("RS-217: %d %s", code, body)
	}
}

// TestClearanceOfAdapters: an adapter that checks the decoded call again finds it approved, but no
// other call, and triggers no second request.
func TestClearanceOfAdapters(t *testing.T) {
	a := &asked{answers: []oauth.Clearance{given}}
	r, calls := clearanceRig(t, a, nil)
	same := Operation{Method: "tools/call", Name: "erase", Arguments: json.RawMessage(`{ "a": 1 }`)}
	other, another := same, same
	other.Arguments, another.Name = json.RawMessage(`{"a":1.0}`), "give"
	var missing *ClearanceError
	r.next = func(_ http.ResponseWriter, req *http.Request) {
		ctx := req.Context()
		for range 2 {
			if err := r.Authorize(ctx, same); err != nil {
				t.Errorf("RS-217: the call itself: %v", err)
			}
		}
		for _, op := range []Operation{other, another} {
			if err := r.Authorize(ctx, op); !errors.As(err, &missing) || missing.Required.By == "" {
				t.Errorf("RS-217: another call: %v", err)
			}
			if err := r.Authorize(Begun(ctx), op); err != nil {
				t.Errorf("RS-217: about the started task: %v", err)
			}
			if !r.Covers(ctx, op) {
				t.Errorf("RS-54: a list would not show %s", op.Name)
			}
		}
		if err := r.Recheck(ctx, other); !errors.As(err, &missing) {
			t.Errorf("RS-217: Recheck of another call: %v", err)
		}
		TakeCalls(ctx)
		r.Report(ctx, CallEvent{Method: same.Method, Name: same.Name, Arguments: same.Arguments, Outcome: OutcomeOK})
		r.Report(ctx, CallEvent{Method: other.Method, Name: other.Name, Arguments: other.Arguments, Outcome: OutcomeOK})
	}
	if w := r.call("writer", tool("erase")); w.Code != 200 || len(a.demands) != 1 {
		t.Fatalf("%d %s, asked %v", w.Code, w.Body, a.demands)
	}
	if len(*calls) != 2 || (*calls)[0].Clearance != "c1" || (*calls)[1].Clearance != "" {
		t.Errorf("RS-217: reported %+v", *calls)
	}
	// Without a request, as over stdio, approval cannot be requested.
	ctx := NewContext(context.Background(), people(r.now)["writer"])
	if err := r.Authorize(ctx, same); !errors.As(err, &missing) {
		t.Errorf("RS-217: without a request: %v", err)
	}
	// The principal of one request does not count in another.
	r.next = func(_ http.ResponseWriter, req *http.Request) {
		if err := r.Authorize(req.Context(), same); !errors.As(err, &missing) {
			t.Errorf("RS-217: by another request: %v", err)
		}
	}
	r.call("writer", tool("read"))
}
