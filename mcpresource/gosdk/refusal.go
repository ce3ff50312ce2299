package gosdk

import (
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Own checks that the caller owns an object. owner is the stored [mcpresource.Principal.Person] who
// created the object, or the [mcpresource.Principal.Key] if the application counts, too. It returns
// nil for the owner. Other callers get the same error as for a missing object, so that they cannot
// find out which objects exist (MCP Security Best Practices, "State Handle Hijacking").
func Own(req mcp.Request, owner string) error {
	if p, ok := Principal(req); ok && owner != "" && (p.Person() == owner || p.Key() == owner) {
		return nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Not found."}
}

// Refusal converts an error of Guard.Require, Guard.Authorize or Guard.Recheck to a JSON-RPC error,
// for handlers that check more than the policy can:
//
//	if err := guard.Require(ctx, "files:delete"); err != nil {
//		return nil, nil, gosdk.Refusal(err)
//	}
//
// Other errors and nil are returned unchanged.
func Refusal(err error) error {
	var scope *mcpresource.ScopeError
	var proof *mcpresource.AuthenticationError
	var clearance *mcpresource.ClearanceError
	for _, known := range []error{
		mcpresource.ErrNoCaller, mcpresource.ErrInvalidToken, mcpresource.ErrUnavailable, mcpresource.ErrForbidden,
		mcpresource.ErrResourceURI,
	} {
		if errors.Is(err, known) {
			return forbidden(err)
		}
	}
	if errors.As(err, &scope) || errors.As(err, &proof) || errors.As(err, &clearance) {
		return forbidden(err)
	}
	return err
}

// forbidden converts a refusal to a JSON-RPC error.
func forbidden(err error) *jsonrpc.Error {
	var scope *mcpresource.ScopeError
	var proof *mcpresource.AuthenticationError
	switch {
	case errors.Is(err, mcpresource.ErrResourceURI):
		return &jsonrpc.Error{
			Code: jsonrpc.CodeInvalidParams, Message: "The resource URI is not in its canonical form.",
		}
	case errors.Is(err, mcpresource.ErrUnavailable):
		return refusalOf("This cannot be decided now: try again.", "error", "temporarily_unavailable")
	case errors.Is(err, mcpresource.ErrForbidden):
		return refusalOf("This operation is not permitted.", "error", "forbidden")
	case errors.As(err, &scope) && scope.Denied:
		return refusalOf(cmp.Or(scope.Reason, "This operation is not permitted."), "error", "insufficient_scope")
	case errors.As(err, &scope):
		return refusalOf("This operation needs more scope.", "error", "insufficient_scope", "scope",
			strings.Join(scope.Required, " "))
	case errors.As(err, &proof):
		return refusalOf("This operation needs a stronger or more recent sign-in.", "error",
			string(oauth.InsufficientAuthentication), "acr_values", strings.Join(proof.Required.ACR, " "),
			"max_age", maxAge(proof.Required.MaxAge))
	case errors.As(err, new(*mcpresource.ClearanceError)):
		return refusalOf("A person has to approve this call, and cannot be asked in this way.", "error", "clearance_required")
	case errors.Is(err, mcpresource.ErrInvalidToken):
		return refusalOf("The access token is not valid any more.", "error", "invalid_token")
	}
	return refusalOf("Authentication is required.", "error", "invalid_token")
}

// maxAge returns a max_age as OAuth formats it, or "" for 0.
func maxAge(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return strconv.FormatInt(int64(d/time.Second), 10)
}

// refusalOf returns an error with data from pairs of name and value. Empty values are left out.
func refusalOf(text string, data ...string) *jsonrpc.Error {
	m := map[string]string{}
	for i := 0; i < len(data); i += 2 {
		if data[i+1] != "" {
			m[data[i]] = data[i+1]
		}
	}
	raw, _ := json.Marshal(m) // a map of strings always encodes
	return &jsonrpc.Error{Code: protocol.CodeRefused, Message: text, Data: raw}
}
