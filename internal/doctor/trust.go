package doctor

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/label"
)

// trust checks the keys of each trusted issuer, and rules that probably admit too much.
func (d *doctor) trust(ctx context.Context) {
	parts := d.in.Parts()
	if !d.current {
		parts.Store = nil // configured entries can still be checked
	}
	issuers, err := parts.Issuers(d.in.Config.Issuer)
	if err != nil {
		return // configuration has reported it
	}
	findings, err := issuers.Probe(ctx)
	if err != nil {
		d.fail("trust", "", "the entries cannot be read: %s", label.FirstLine(err))
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
