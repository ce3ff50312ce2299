package main

import "context"

// trust checks the keys of each trusted issuer, and rules that probably admit too much.
func (d *doctor) trust(ctx context.Context) {
	a := d.app
	parts := a.parts()
	if !d.current {
		parts.Store = nil // configured entries can still be checked
	}
	issuers, err := parts.Issuers(a.config.Issuer)
	if err != nil {
		return // configuration has reported it
	}
	findings, err := issuers.Probe(ctx)
	if err != nil {
		d.fail("trust", "", "the entries cannot be read: %s", oneLine(err))
		return
	}
	for _, f := range findings {
		switch {
		case f.Problem:
			d.fail("trust "+f.Entry, "see docs/trust.md, \"Keys\"", "%s", f.What)
		case f.What == "":
			d.ok("trust "+f.Entry, "its keys were read")
		default:
			d.warn("trust "+f.Entry, "mcp-authd trust show "+f.Entry, "%s", f.What)
		}
	}
}
