package trust

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Finding is a result about one entry.
type Finding struct {
	Entry   string
	Problem bool   // its assertions are not accepted
	What    string // "": its keys were read
}

// Probe reads the keys of each entry now, and reports rules that are valid but probably unintended.
// The error comes from the store.
func (i *Issuers) Probe(ctx context.Context) ([]Finding, error) {
	entries, err := i.entries(ctx)
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, e := range entries {
		if !e.DisabledAt.IsZero() {
			out = append(out, Finding{e.ID, false, "is disabled"})
			continue
		}
		if err := i.keySet(e.keys).set.Refresh(ctx); err != nil {
			out = append(out, Finding{e.ID, true, "the keys of " + e.Issuer + " cannot be had: " + err.Error()})
		} else {
			out = append(out, Finding{Entry: e.ID})
		}
		for _, w := range e.warnings() {
			out = append(out, Finding{e.ID, false, w})
		}
	}
	return out, nil
}

// warnings returns the rules that are valid but probably unintended.
func (e *entry) warnings() (out []string) {
	narrow := e.Kind == Enterprise
	for _, m := range e.Match {
		narrow = narrow || m.Glob == "" || !wide(m.Glob)
	}
	if !narrow {
		out = append(out, "every rule is a pattern without a name in it: programs of others fit as well")
	}
	if e.MaxTTL > time.Hour {
		out = append(out, fmt.Sprintf("assertions may be valid for %s (max_ttl), and a stolen one is good as long", e.MaxTTL))
	}
	if e.Resubmit && e.Preset != "azure" {
		out = append(out, "an assertion can be used again until it expires (resubmit)")
	}
	return out
}

// Warnings returns rules of an entry that are valid but probably unintended. It returns nil for an
// invalid entry.
func Warnings(e storage.TrustEntry) []string {
	c, err := compile(e)
	if err != nil {
		return nil
	}
	return c.warnings()
}

// schemes lists the prefixes that platforms give to the names of all their programs.
var schemes = []string{
	"repo:", "project_path:", "system:serviceaccount:", "spiffe://", "arn:aws:iam::", "refs/", "https://",
}

// wide reports whether a glob has no fixed text before its first star.
func wide(glob string) bool {
	for _, s := range schemes {
		glob = strings.TrimPrefix(glob, s)
	}
	fixed, _, _ := strings.Cut(glob, "*")
	return strings.Trim(fixed, "?/:.") == ""
}
