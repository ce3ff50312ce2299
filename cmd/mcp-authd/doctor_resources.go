package main

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/gateway/stdio"
)

// resources looks at what the configuration names.
func (d *doctor) resources(ctx context.Context) {
	known := d.app.config.StorageResources()
	switch {
	case d.current:
		all, err := d.app.listed(ctx)
		if err != nil {
			d.fail("resources", "", "the resources cannot be read: %s", oneLine(err))
			return
		}
		known = nil
		for _, r := range all {
			known = append(known, r.Resource)
		}
	case d.app.config.Postgres() || d.app.hasDatabase():
		return // what is in it cannot be told
	}
	found, err := d.app.misfits(known)
	if err != nil {
		d.fail("resources", "", "%s", err)
		return
	}
	for _, m := range found {
		d.fail("resources", m.advice, "%s", m.what)
	}
	if len(found) == 0 && len(known) > 0 {
		d.ok("resources", "each resource and scope that the configuration names is there (%d resources)", len(known))
	}
}

// programs looks at what the programs of MCP servers could read.
func (d *doctor) programs() {
	for i := range d.app.config.Resources {
		r := &d.app.config.Resources[i]
		if len(r.Upstream.Command) == 0 {
			continue
		}
		if _, err := stdio.LookUp(r.Upstream.User); err != nil {
			d.fail("programs", "", "%s: %s", r.URI, err)
			continue
		}
		if reach := d.app.reach(&r.Upstream); len(reach) > 0 {
			what, advice := reachText(r, reach)
			d.warn("programs", advice, "%s", what)
			continue
		}
		d.ok("programs", "the program of %s cannot read the secret key", r.URI)
	}
}
