package mcpresource

import (
	"slices"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/rules"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// require returns the policy's requirement for an operation. If the caller's token demands it, the
// requirement includes the user's approval. p is nil for an unknown caller.
func (s *permissions) require(p *Principal, op Operation) Requirement {
	need := s.policy.Require(op)
	if !need.Deny && !rules.DemandsApproval(need.Clearance) && approves(p, op) {
		need.Clearance = Clearance{By: oauth.ClearanceByPerson}
	}
	return need
}

// approves reports whether the authorization server requires the user to approve this call of a
// tool. The claim approve_tools of mcp-authd lists such tools, by name or pattern.
func approves(p *Principal, op Operation) bool {
	if p == nil || op.Method != "tools/call" {
		return false
	}
	return slices.ContainsFunc(token.Approvals(p), func(pattern string) bool { return rules.Matches(pattern, op.Name) })
}
