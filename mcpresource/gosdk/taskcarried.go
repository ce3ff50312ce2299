package gosdk

import (
	"encoding/json"
	"maps"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
)

// carriedKey is the key of taskMembers in auth.TokenInfo.Extra, which belongs to one request: the
// types of the SDK lack these members.
const carriedKey = "github.com/mcp-authd/mcp-authd/mcpresource.tasks"

type carriedContext struct{}

// taskMembers holds the members of params that concern tasks.
type taskMembers struct {
	task    json.RawMessage // of tools/call in 2025-11-25; may be nil
	listens bool            // whether subscriptions/listen includes tasks
}

// taskMembers returns the task members of a message. Members of another type are ignored.
func (m message) taskMembers() (out taskMembers) {
	if !m.isRequest() {
		return out
	}
	switch *m.Method {
	case "tools/call":
		if string(m.Params.Task) != "null" {
			out.task = m.Params.Task
		}
	case "subscriptions/listen":
		var n struct {
			TaskIDs []json.RawMessage `json:"taskIds"`
		}
		out.listens = json.Unmarshal(m.Params.Notifications, &n) == nil && len(n.TaskIDs) > 0
	}
	return out
}

// carried returns the members that the transport has read.
func carried(req mcp.Request) taskMembers {
	extra := req.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return taskMembers{}
	}
	out, _ := extra.TokenInfo.Extra[carriedKey].(taskMembers)
	return out
}

// carrying returns a copy of info with m, for one request.
func carrying(info *auth.TokenInfo, m taskMembers) *auth.TokenInfo {
	own := *info
	own.Extra = maps.Clone(info.Extra)
	own.Extra[carriedKey] = m
	return &own
}

// checkTaskName checks that the header with the task's id matches the body, since 2026-07-28
// (SEP-2663, "Streamable HTTP: Routing Headers", RS-187). Bodies without an id are left to the SDK.
func (b body) checkTaskName(r *http.Request) *refusal {
	m := b.messages[0]
	if m.ID == nil || !extendedTasks.has(*m.Method) {
		return nil
	}
	var id string
	if json.Unmarshal(m.Params.TaskID, &id) != nil || id == "" {
		return nil
	}
	if sent := r.Header.Get(protocol.HeaderName); sent != id {
		return &refusal{
			http.StatusBadRequest, mcp.CodeHeaderMismatch, "The header Mcp-Name has to be the taskId of the body.",
			m.ID,
		}
	}
	return nil
}
