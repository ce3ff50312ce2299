package token

import (
	"encoding/json"
	"slices"
)

// everyTool is the pattern for all tools.
const everyTool = "*"

// Approvals returns the tools in the claim approve_tools, or all tools if it cannot be read.
func Approvals(p *Principal) []string {
	if p.approveKnown || len(p.Claims) == 0 {
		return p.approve
	}
	var says struct {
		Tools json.RawMessage `json:"approve_tools"`
	}
	if json.Unmarshal(p.Claims, &says) != nil {
		return []string{everyTool}
	}
	return approvalsIn(says.Tools)
}

// setApprovals stores the claim approve_tools.
func (p *Principal) setApprovals(claim json.RawMessage) {
	p.approve, p.approveKnown = approvalsIn(claim), true
}

// approvalsIn reads the claim approve_tools. It returns all tools if the claim is malformed.
func approvalsIn(claim json.RawMessage) []string {
	if len(claim) == 0 {
		return nil
	}
	var tools []string
	if json.Unmarshal(claim, &tools) != nil || tools == nil || slices.Contains(tools, "") {
		return []string{everyTool}
	}
	return tools
}
