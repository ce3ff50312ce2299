package mcpresource

import "context"

// ClearanceError says that an operation needs the permission of a person, which this request has not been given. The
// guard asks for it in HTTP requests; over stdio it cannot be asked for.
type ClearanceError struct{ Required Clearance }

// Error implements error.
func (e *ClearanceError) Error() string {
	return "mcpresource: the operation needs clearance by a person: " + e.Required.By
}

// cleared is the call that a request was let through for.
type cleared struct{ id, tool, digest string }

// isFor reports whether the call is op. An adapter may have decoded it: what differs in white space alone is the same.
func (c *cleared) isFor(op Operation) bool {
	return c != nil && op.Method == "tools/call" && c.tool == op.Name && c.digest == Digest(op.Arguments)
}

type begunKey struct{}

// Begun returns a context for what comes after a call that was let through before, as the questions of a client about
// its task: Authorize and Recheck demand no clearance in it, which was for the call.
func Begun(ctx context.Context) context.Context { return context.WithValue(ctx, begunKey{}, true) }

// clearedFor returns a *ClearanceError when op needs a permission that the request of p has not been given.
func clearedFor(ctx context.Context, p *Principal, op Operation, need Clearance) error {
	if !need.demands() || p.cleared.isFor(op) || ctx.Value(begunKey{}) != nil {
		return nil
	}
	return &ClearanceError{need}
}
