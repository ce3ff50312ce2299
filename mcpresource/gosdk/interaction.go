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

// How a call of 2026-07-28 that comes back with the person's consent waits for the person
// to be done in the browser, which the client cannot know.
const (
	interactionWait = 45 * time.Second
	interactionPoll = 2 * time.Second
)

// interact turns a call that ended because the person has to visit a page first
// (mcpresource.InteractionRequiredError) into a question by the client, if the client has
// said that it can show links; else the answer holds the link as text. The page is not the
// way to sign in to this server, which the guard asks for by 401 (RS-133, RS-199).
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
		return tool, nil // its text is for the model and the person to read
	}
	return nil, &jsonrpc.Error{Code: protocol.CodeRefused, Message: need.Error()}
}

// interaction finds the error, also where the SDK has made a result of it.
func interaction(result mcp.Result, err error) (need *mcpresource.InteractionRequiredError) {
	if tool, ok := result.(*mcp.CallToolResult); ok && tool != nil && err == nil {
		err = tool.GetError()
	}
	errors.As(err, &need)
	return need
}

// await repeats the call until the person is done. A tool that gets as far as asking for
// an upstream token does so before it does anything else.
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

// question is what the client shows: a link, never a form for a secret (RS-125, RS-198). It does not
// name the person (RS-201).
func question(need *mcpresource.InteractionRequiredError, id string) *mcp.ElicitParams {
	return &mcp.ElicitParams{
		Mode: "url", URL: need.URL, ElicitationID: id,
		Message: "Access to your " + need.Provider + " account is needed. Please allow it in your browser.",
	}
}

// questionKey names the question in the answers of the client.
func questionKey(need *mcpresource.InteractionRequiredError) string {
	return "connect-" + need.Provider
}

// inquiry is the result of 2026-07-28 that has the client put the question and call again (RS-178).
// The question has no id there (RS-204). The state of a tool that is itself in the middle of such a
// conversation is kept.
func inquiry(req mcp.Request, need *mcpresource.InteractionRequiredError) mcp.Result {
	return &inputRequired{&mcp.CallToolResult{
		InputRequests: mcp.InputRequestMap{questionKey(need): question(need, "")}, RequestState: state(req),
	}}
}

// inputRequired is a result that asks for input (RS-179). The SDK marks those that a handler
// returns, and leaves middleware no way to.
type inputRequired struct{ *mcp.CallToolResult }

// MarshalJSON implements json.Marshaler.
func (r *inputRequired) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		ResultType    string              `json:"resultType"`
		InputRequests mcp.InputRequestMap `json:"inputRequests"`
		RequestState  string              `json:"requestState,omitempty"`
	}{"input_required", r.InputRequests, r.RequestState})
}

// asked is any of the requests that may be answered by a question.
type asked interface {
	ClientCapabilities() *mcp.ClientCapabilities
}

// showsLinks reports whether the client can show a link to the person (RS-180).
func showsLinks(req mcp.Request) bool {
	r, ok := req.(asked)
	if !ok {
		return false
	}
	c := r.ClientCapabilities()
	return c != nil && c.Elicitation != nil && c.Elicitation.URL != nil
}

// answered returns what the person said to the question, "" for not asked yet.
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
