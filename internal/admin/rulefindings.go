package admin

import (
	"fmt"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/access"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func exists(groups []storage.Group, name string) bool {
	return slices.ContainsFunc(groups, func(g storage.Group) bool { return g.Name == name })
}

// RuleFindings reports rules that admit nobody or everybody, or that name something that does not
// exist.
func RuleFindings(rules []storage.AccessRule, groups []storage.Group, known []storage.Resource) (out []string) {
	members, resources := map[string]int{}, map[string]storage.Resource{}
	for _, g := range groups {
		members[g.Name] = g.Members + g.ProviderGroups
	}
	for _, r := range known {
		resources[policy.Canonical(r.URI)] = r
	}
	open, shut := map[string]bool{}, map[string]bool{} // for all by the rule for everyone; for users without a rule
	narrow := map[string]bool{}                        // for the members of a group, or with approvals for some
	grouped, inside := map[string]bool{}, map[string]bool{}
	for _, r := range rules {
		of, there := resources[r.Resource]
		all := r.All || there && len(policy.ResourceScopes(of).Without(r.Scopes)) == 0
		useless := !r.All && len(r.Scopes) > 0 && len(policy.EveryCall(of).Without(r.Scopes)) > 0
		switch {
		case r.Config && r.Group != "" && !exists(groups, r.Group):
			out = append(out, fmt.Sprintf("the configured rule for group %s at %s applies to nobody: there is no such group. "+
				"Make it: mcp-authd group add %s", r.Group, r.Resource, r.Group))
		case !there:
			out = append(out, fmt.Sprintf("the rule about %s is for %s, which is not known here", access.Subject(r), r.Resource))
		case useless:
			out = append(out, fmt.Sprintf("the rule about %s at %s lacks %s, which every call needs: it lets nobody in",
				access.Subject(r), r.Resource, policy.EveryCall(of).Without(r.Scopes).String()))
		}
		gives := (r.All || len(r.Scopes) > 0) && !useless
		everyone := r.UserID == "" && r.Group == ""
		grouped[r.Resource] = grouped[r.Resource] || r.Group != ""
		narrow[r.Resource] = narrow[r.Resource] || r.Group != "" && !all || r.UserID == "" && len(r.Approve) > 0
		shut[r.Resource] = shut[r.Resource] || r.Group != "" || everyone && !gives
		open[r.Resource] = open[r.Resource] || everyone && all
		inside[r.Resource] = inside[r.Resource] || gives && (r.Group == "" || members[r.Group] > 0)
	}
	for _, r := range known {
		uri := policy.Canonical(r.URI)
		switch {
		case shut[uri] && !inside[uri]:
			out = append(out, "the rules for "+uri+" let nobody in: none allows a user, a group with members, or everyone a scope")
		case grouped[uri] && open[uri] && !narrow[uri]:
			out = append(out, "everyone may use every scope of "+uri+", so the rules for groups change nothing")
		}
	}
	return out
}
