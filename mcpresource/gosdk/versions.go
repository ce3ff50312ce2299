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

// opensNone returns an error for initialize if the server has no revision with sessions, otherwise
// nil. The error names the server's revisions (MCP 2026-07-28, "Versioning", RS-88, RS-175). The
// SDK would open a session of a revision that the server lacks, and reject the next request.
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

// askRevisions asks the server for its revisions over a temporary connection, because the SDK has
// no method for this and answers nothing without a connection. It returns nil on failure.
func (a *Adapter) askRevisions() []string {
	_, transport := mcp.NewInMemoryTransports()
	s, err := a.server.Connect(context.Background(), transport, nil)
	if err != nil {
		return nil
	}
	defer func() { _ = s.Close() }() // no request is open
	result, err := a.inner(context.Background(), "server/discover",
		&mcp.ServerRequest[*mcp.DiscoverParams]{Session: s, Params: &mcp.DiscoverParams{}, Extra: &mcp.RequestExtra{}})
	if d, ok := result.(*mcp.DiscoverResult); err == nil && ok {
		return d.SupportedVersions
	}
	return nil
}

// refuseOpening answers initialize instead of the SDK, whose error would name a session.
func refuseOpening(w http.ResponseWriter, b body, e *jsonrpc.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	id := b.id()
	if id == nil { // initialize as a notification
		id = json.RawMessage("null")
	}
	answer, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": e}) // strings always encode
	_, _ = w.Write(answer)                                                            // fails if the client has gone
}
