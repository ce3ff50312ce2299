package mcpresource

import (
	"log/slog"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/limits"
)

// Limits limits the requests of each caller. MCP requires limits for tool calls (RS-189) and
// completions (RS-190). A caller is a user of an issuer with all their applications, or a machine
// ([Principal.Person]), never a session or a header. A zero member means its default, a negative
// one no limit.
//
// A request counts as running before its body is read, and its bytes count in [Bodies] until it
// ends. Up to 50,000 rate counters are kept: one per caller, and one per caller and entry of Tools.
// Further callers replace counters that are almost unused, never one that makes a caller wait.
// Sessions are limited by Config.MaxSessions, Config.MaxAnonymousSessions and [NewMemorySessions].
type Limits = limits.Limits

// Rate is a rate limit.
type Rate = limits.Rate

// Limiter limits how often callers may do operations.
type Limiter = limits.Limiter

// LimitError means that a caller exceeds a limit. Guard.Admit returns it.
type LimitError = limits.LimitError

// NewLimiter returns a limiter for Config.Limiter that applies l.Calls and l.Tools and counts in c.
// The other members of l belong in Config.Limits. While c does not answer, it counts in this
// process alone, because a failed counter must not stop all calls. A nil logger discards. It
// returns an error for a rate without PerSecond.
func NewLimiter(l Limits, c Counter, logger *slog.Logger) (Limiter, error) {
	return limits.NewLimiter(l, c, logger)
}

// Counter counts for several replicas. Package mcpresource/postgres provides one.
type Counter = limits.Counter

// Allowance is a rate limit: Burst at once after a pause, and one more after each Every.
type Allowance = limits.Allowance

// Bodies limits the memory for request bodies of all callers, from the first byte read until the
// request ends. One caller gets at most a quarter of the memory that the others leave, so that no
// number of callers can take all of it. Requests without a token count as one caller. The guards of
// a process should share one Bodies.
type Bodies = limits.Bodies

// NewBodies returns a limit of the given number of bytes.
func NewBodies(bytes int64) *Bodies {
	return limits.NewBodies(bytes)
}

// Binding is the owner of an MCP session: the user for whom the server opened it in response to
// initialize. For everyone else the session does not exist (404). Each request is checked by its
// own token. So another application of the same user may continue the session, as clients do that
// register again for more scopes; events then name the opener.
type Binding = limits.Binding

// SessionBinder stores the owners of sessions. For a server with several replicas and sticky
// sessions, the one in memory is sufficient.
type SessionBinder = limits.SessionBinder

// NewMemorySessions returns a binder that stores up to size sessions (default 10,000), each for a
// day after its last use. When it is full, the user with the most sessions loses the least recently
// used one, so that a user cannot evict the sessions of others. A forgotten session belongs to the
// next user whose request the server accepts in it. MCP libraries that record the user themselves,
// such as the Go SDK, refuse others.
func NewMemorySessions(size int) SessionBinder {
	return limits.NewMemorySessions(size)
}
