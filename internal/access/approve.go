package access

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/scoperule"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// everyTool is the pattern for all tools.
const everyTool = "*"

// The limits of what Approvals returns. It is part of every access token, which travels in a header.
const (
	maxApprovals    = 2 * storage.MaxRuleTools
	maxApprovalSize = storage.MaxRuleTools * storage.MaxRuleTool // bytes of all names together
)

// Approvals returns the tools of a resource, by name or pattern, whose calls an account's user must
// approve under the rules. The rules that decide about the scopes decide: all of them together, so
// a second group takes no approval away. It returns "*", for all tools, if the list would be too
// long, or if there are such rules and the user's groups cannot be read: the client may have spent
// its code by then, so an error would end the sign-in.
func (r *Rules) Approvals(ctx context.Context, userID, resource string) ([]string, error) {
	all, err := r.current.Load(ctx)
	if err != nil {
		return nil, err
	}
	about := Of(all, resource)
	if !slices.ContainsFunc(about, func(r storage.AccessRule) bool { return len(r.Approve) > 0 }) {
		return nil, nil
	}
	m, err := r.store.Membership(ctx, userID)
	if err == nil && !personal(about, userID) { // else no group counts
		m, err = r.joined(ctx, about, m)
	}
	if err != nil {
		return []string{everyTool}, nil
	}
	rules, holds := compile(about, m)
	tools, _ := approvals(about, rules, holds)
	return tools, nil
}

// approvals returns the tools of the deciding rules, and the subjects of the rules that name tools.
func approvals(about []storage.AccessRule, rules []scoperule.Rule, holds []bool) (tools, by []string) {
	rank := scoperule.Everyone
	for i, rule := range rules {
		if holds[i] {
			rank = min(rank, rule.Rank)
		}
	}
	size := 0
	for i, rule := range rules {
		if holds[i] && rule.Rank == rank && len(about[i].Approve) > 0 {
			tools, by = append(tools, about[i].Approve...), append(by, Subject(about[i]))
		}
	}
	slices.Sort(tools)
	tools = slices.Compact(tools)
	for _, tool := range tools {
		size += len(tool)
	}
	if slices.Contains(tools, everyTool) || len(tools) > maxApprovals || size > maxApprovalSize {
		tools = []string{everyTool}
	}
	return tools, by
}

// CheckTools returns an error if the tools that a rule makes people approve are wrong.
func CheckTools(tools []string) error {
	if len(tools) > storage.MaxRuleTools {
		return fmt.Errorf("a rule must name at most %d tools to approve: use a pattern such as delete_*", storage.MaxRuleTools)
	}
	for _, tool := range tools {
		odd := func(r rune) bool { return r <= ' ' || r > '~' || r == ',' }
		switch {
		case tool == "" || len(tool) > storage.MaxRuleTool || strings.ContainsFunc(tool, odd):
			return fmt.Errorf("%q must be the name of a tool, or a pattern such as delete_*: at most %d visible ASCII "+
				"characters, without a comma", tool, storage.MaxRuleTool)
		case strings.Contains(strings.TrimSuffix(tool, everyTool), everyTool):
			return fmt.Errorf("%q: a * is allowed only at the end", tool)
		}
	}
	return nil
}
