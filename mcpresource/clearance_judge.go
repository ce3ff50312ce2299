package mcpresource

import (
	"context"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/rules"
)

// ClearanceError means that an operation needs an approval that this request does not have. For
// HTTP requests the guard requests approvals; over stdio that is not possible.
type ClearanceError struct{ Required Clearance }

// Error implements error.
func (e *ClearanceError) Error() string {
	return "mcpresource: the operation needs clearance by a person: " + e.Required.By
}

// cleared is the call that was approved for a request.
type cleared struct{ id, tool, digest string }

// isFor reports whether op is the approved call. Adapters may decode it, so differences in white
// space are ignored.
func (c *cleared) isFor(op Operation) bool {
	return c != nil && op.Method == "tools/call" && c.tool == op.Name && c.digest == Digest(op.Arguments)
}

type begunKey struct{}

// Begun returns a context for work that follows an allowed call, such as a client's questions about
// its task. With it, Authorize and Recheck require no approval, because the call already had it.
func Begun(ctx context.Context) context.Context { return context.WithValue(ctx, begunKey{}, true) }

// clearedFor returns a *ClearanceError if op needs an approval that the request of p does not have.
func clearedFor(ctx context.Context, p *Principal, op Operation, need Clearance) error {
	if !rules.DemandsApproval(need) || clearedOf(p).isFor(op) || ctx.Value(begunKey{}) != nil {
		return nil
	}
	return &ClearanceError{need}
}
