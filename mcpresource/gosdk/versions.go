package gosdk

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
)

// opensNone returns the error for initialize at a server that has no revision with sessions, which
// names those that it has (MCP 2026-07-28, "Versioning", RS-88, RS-175); nil if it has one. The SDK
// opens a session of a revision that the server does not have, and refuses the next request.
func (a *Adapter) opensNone(requested string) *jsonrpc.Error {
	has := a.revisions()
	if len(has) == 0 || slices.ContainsFunc(has, func(v string) bool { return !protocol.IsStateless(v) }) {
		return nil
	}
	data, _ := json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: has, Requested: requested}) // strings
	return &jsonrpc.Error{
		Code: mcp.CodeUnsupportedProtocolVersion, Message: "This server has no revision with sessions.", Data: data,
	}
}

// askRevisions asks the server which revisions it has, over a connection that is made for that: the
// SDK has no method for it, and answers nothing about a server without one. None are known where it
// fails.
func (a *Adapter) askRevisions() []string {
	_, transport := mcp.NewInMemoryTransports()
	s, err := a.server.Connect(context.Background(), transport, nil)
	if err != nil {
		return nil
	}
	defer func() { _ = s.Close() }() // nothing is under way
	result, err := a.inner(context.Background(), "server/discover",
		&mcp.ServerRequest[*mcp.DiscoverParams]{Session: s, Params: &mcp.DiscoverParams{}, Extra: &mcp.RequestExtra{}})
	if d, ok := result.(*mcp.DiscoverResult); err == nil && ok {
		return d.SupportedVersions
	}
	return nil
}

// refuseOpening answers initialize in place of the SDK, which would name a session with its error.
func refuseOpening(w http.ResponseWriter, b body, e *jsonrpc.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	id := b.id()
	if id == nil { // initialize as a notification
		id = json.RawMessage("null")
	}
	answer, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": e}) // of text
	_, _ = w.Write(answer)                                                            // fails when the client has gone
}
