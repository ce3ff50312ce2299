package gosdk

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// A call of 2026-07-28 that returns with the user's consent waits interactionWait until the user
// has finished in the browser, which the client cannot observe. It checks every interactionPoll.
const (
	interactionWait = 45 * time.Second
	interactionPoll = 2 * time.Second
)

// interact converts a result with mcpresource.InteractionRequiredError, which means that the user
// must first visit a page. If the client declared that it can show links, the result becomes a
// question; otherwise it contains the link as text. The page does not sign in to this server: for
// that the guard answers 401 (RS-133, RS-199).
func (x *exchange) interact(
	ctx context.Context, result mcp.Result, err error, again func() (mcp.Result, error),
) (mcp.Result, error) {
	need := interaction(result, err)
	if need == nil {
		return result, err
	}
	switch {
	case protocol.IsStateless(x.version) && answered(x.req, need) == "accept":
		if result, err = x.o.await(ctx, again); interaction(result, err) == nil {
			return result, err
		}
	case protocol.IsStateless(x.version) && answered(x.req, need) == "" && showsLinks(x.req):
		return inquiry(x.req, need), nil
	case x.version == protocol.Rev20251125 && showsLinks(x.req): // RS-125
		return nil, mcp.URLElicitationRequiredError([]*mcp.ElicitParams{question(need, rand.Text())})
	}
	if tool, ok := result.(*mcp.CallToolResult); ok && tool != nil {
		return tool, nil // its text is for the model and the user
	}
	return nil, &jsonrpc.Error{Code: protocol.CodeRefused, Message: need.Error()}
}

// interaction returns the error, even if the SDK converted it to a result, or nil.
func interaction(result mcp.Result, err error) (need *mcpresource.InteractionRequiredError) {
	if tool, ok := result.(*mcp.CallToolResult); ok && tool != nil && err == nil {
		err = tool.GetError()
	}
	errors.As(err, &need)
	return need
}

// await repeats the call until the user has finished. That is safe because a tool requests its
// upstream token before it does anything else.
func (o *Options) await(ctx context.Context, again func() (mcp.Result, error)) (result mcp.Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, interactionWait)
	defer cancel()
	tick := time.NewTicker(o.poll())
	defer tick.Stop()
	for {
		if result, err = again(); interaction(result, err) == nil {
			return result, err
		}
		select {
		case <-ctx.Done():
			return result, err
		case <-tick.C:
		}
	}
}

func (o *Options) poll() time.Duration {
	if o.interactionPoll > 0 {
		return o.interactionPoll
	}
	return interactionPoll
}

// question returns the question for the client: a link, never a form for a secret (RS-125, RS-198).
// It does not name the user (RS-201).
func question(need *mcpresource.InteractionRequiredError, id string) *mcp.ElicitParams {
	return &mcp.ElicitParams{
		Mode: "url", URL: need.URL, ElicitationID: id,
		Message: "Access to your " + need.Provider + " account is needed. Please allow it in your browser.",
	}
}

// questionKey returns the key of the question in the client's answers.
func questionKey(need *mcpresource.InteractionRequiredError) string {
	return "connect-" + need.Provider
}

// inquiry returns the 2026-07-28 result that makes the client ask the question and call again
// (RS-178). In that revision the question has no id (RS-204). The state of a tool with its own
// pending questions is kept.
func inquiry(req mcp.Request, need *mcpresource.InteractionRequiredError) mcp.Result {
	return &inputRequired{&mcp.CallToolResult{
		InputRequests: mcp.InputRequestMap{questionKey(need): question(need, "")}, RequestState: state(req),
	}}
}

// inputRequired is a result that requests input (RS-179). The SDK only marks results of handlers as
// such, not those of middleware.
type inputRequired struct{ *mcp.CallToolResult }

// MarshalJSON implements json.Marshaler.
func (r *inputRequired) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		ResultType    string              `json:"resultType"`
		InputRequests mcp.InputRequestMap `json:"inputRequests"`
		RequestState  string              `json:"requestState,omitempty"`
	}{"input_required", r.InputRequests, r.RequestState})
}

// asked is a request whose result may be a question.
type asked interface {
	ClientCapabilities() *mcp.ClientCapabilities
}

// showsLinks reports whether the client can show a link to the user (RS-180).
func showsLinks(req mcp.Request) bool {
	r, ok := req.(asked)
	if !ok {
		return false
	}
	c := r.ClientCapabilities()
	return c != nil && c.Elicitation != nil && c.Elicitation.URL != nil
}

// answered returns the user's answer to the question, or "" if it was not asked yet.
func answered(req mcp.Request, need *mcpresource.InteractionRequiredError) string {
	var answers mcp.InputResponseMap
	switch p := req.GetParams().(type) {
	case *mcp.CallToolParamsRaw:
		answers = p.InputResponses
	case *mcp.GetPromptParams:
		answers = p.InputResponses
	case *mcp.ReadResourceParams:
		answers = p.InputResponses
	}
	if a, ok := answers[questionKey(need)].(*mcp.ElicitResult); ok && a != nil {
		return a.Action
	}
	return ""
}

func state(req mcp.Request) string {
	switch p := req.GetParams().(type) {
	case *mcp.CallToolParamsRaw:
		return p.RequestState
	case *mcp.GetPromptParams:
		return p.RequestState
	case *mcp.ReadResourceParams:
		return p.RequestState
	}
	return ""
}
