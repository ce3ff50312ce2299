package doctor

import (
	"context"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/gateway/stdio"
	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/sandbox"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// resources checks the resources that the configuration names.
func (d *doctor) resources(ctx context.Context) {
	known := d.in.Config.StorageResources()
	locked := false
	switch {
	case d.current:
		all, err := d.service().AllResources(ctx)
		if err != nil {
			d.fail("resources", "", "the resources cannot be read: %s", label.FirstLine(err))
			return
		}
		known = nil
		for _, r := range all {
			known = append(known, r.Resource)
		}
		found, err := d.service().ScopeFindings(ctx)
		d.found("resources", found, err)
		locked = len(found) > 0
	case d.in.Config.Postgres() || d.in.HasDatabase():
		return // its contents are unknown
	}
	found, err := d.in.Misfits(known)
	if err != nil {
		d.fail("resources", "", "%s", err)
		return
	}
	for _, m := range found {
		d.fail("resources", m.Advice, "%s", m.What)
	}
	if len(found) == 0 && !locked && len(known) > 0 {
		d.ok("resources", "each resource and scope that the configuration names is there (%s)",
			label.Count(len(known), "resource", "resources"))
	}
}

// rules checks for access rules that admit nobody or everybody.
func (d *doctor) rules(ctx context.Context) {
	if !d.current {
		return
	}
	d.providerGroups(ctx)
	rules, err := d.service().AccessRules(ctx)
	if err != nil || len(rules) == 0 {
		if err != nil {
			d.fail("access rules", "", "the access rules cannot be read: %s", label.FirstLine(err))
		}
		return
	}
	groups, err := d.in.Store.ListGroups(ctx)
	if err != nil {
		d.fail("access rules", "", "the groups cannot be read: %s", label.FirstLine(err))
		return
	}
	known, err := d.service().AllResources(ctx)
	if err != nil {
		return // resources has reported it
	}
	var of []storage.Resource
	for _, r := range known {
		of = append(of, r.Resource)
	}
	found := admin.RuleFindings(rules, groups, of)
	for _, what := range found {
		d.warn("access rules", "see: mcp-authd rule list", "%s", what)
	}
	if len(found) == 0 {
		d.ok("access rules", "each lets somebody in (%s)", label.Count(len(rules), "rule", "rules"))
	}
}

// providerGroups looks for groups whose members a provider would have to name that is not configured.
func (d *doctor) providerGroups(ctx context.Context) {
	groups, err := d.in.Store.ListProviderGroups(ctx)
	if err != nil {
		d.fail("groups", "", "the provider groups cannot be read: %s", label.FirstLine(err))
		return
	}
	var connectors []string
	for _, c := range d.in.Config.ThirdParty {
		connectors = append(connectors, c.ID)
	}
	for _, what := range admin.ProviderGroupFindings(groups, connectors) {
		d.warn("groups", "see: mcp-authd group list", "%s", what)
	}
}

// programs looks at what the programs of MCP servers could read.
func (d *doctor) programs() {
	for i := range d.in.Config.Resources {
		r := &d.in.Config.Resources[i]
		if len(r.Upstream.Command) == 0 {
			continue
		}
		account, err := stdio.LookUp(r.Upstream.User)
		if err != nil {
			d.fail("programs", "", "%s: %s", r.URI, err)
			continue
		}
		if inside := r.Upstream.Sandbox.Policy(r.Upstream.Dir); inside != nil {
			if err := inside.Check(int(account.UID)); err != nil {
				d.fail("programs", "set sandbox.best_effort to run it with what there is", "%s: %s (%s)", r.URI, err,
					sandbox.Kernel())
				continue
			}
			d.sandboxed(r, inside)
		}
		if reach := d.in.Reach(&r.Upstream); len(reach) > 0 {
			what, advice := installation.ReachText(r, reach)
			d.warn("programs", advice, "%s", what)
			continue
		}
		d.ok("programs", "the program of %s cannot read the secret key", r.URI)
	}
}

// sandboxed reports how far this kernel supports the sandbox of a program.
func (d *doctor) sandboxed(r *config.Resource, inside *sandbox.Policy) {
	if missing := inside.Lacking(); len(missing) > 0 {
		d.warn("programs", "", "the sandbox of the program of %s is weaker than it was asked for (%s): %s", r.URI,
			sandbox.Kernel(), strings.Join(missing, "; "))
		return
	}
	d.ok("programs", "the program of %s is shut in (%s)", r.URI, sandbox.Kernel())
}
