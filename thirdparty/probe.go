package thirdparty

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// ProbeResult is how one connector does, for the operator.
type ProbeResult struct {
	Connector, Name, Type string
	// RedirectURI has to be registered at the provider, exactly so. LogoutURI is for
	// providers with back-channel logout, "" for others.
	RedirectURI, LogoutURI string
	Findings               []Finding
}

// Verdict is how a finding is to be taken.
type Verdict string

// The verdicts.
const (
	Good    Verdict = "ok"
	Warning Verdict = "warning" // works, but not as well as it could
	Problem Verdict = "problem" // does not work
)

// Finding is one thing that was looked at.
type Finding struct {
	Verdict Verdict
	What    string // what was found
	Advice  string // what to do about it, "" for nothing
}

// Healthy reports whether there is no problem.
func (r ProbeResult) Healthy() bool {
	return !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Verdict == Problem })
}

// Probe looks at every provider from here, for the doctor command: whether it can be
// reached, is who it should be, takes our credentials, and what it offers. It signs no person
// in and changes nothing.
func (d *Delegation) Probe(ctx context.Context) []ProbeResult {
	out := make([]ProbeResult, len(d.connectors))
	var group sync.WaitGroup
	for i, c := range d.connectors {
		group.Go(func() { out[i] = c.examine(ctx) })
	}
	group.Wait()
	return out
}

func (c *connector) examine(ctx context.Context) ProbeResult {
	r := ProbeResult{Connector: c.ID, Name: c.Name, Type: c.Type, RedirectURI: c.redirectURI()}
	if c.traits.OpenID {
		r.LogoutURI = c.redirectURI() + "/logout"
	}
	findings, found := c.Examine(ctx, c.redirectURI())
	for _, f := range findings {
		r.add(Finding{Verdict(f.Verdict), f.What, f.Advice})
	}
	if !found {
		return r
	}
	if ruled := c.rules.claims(); len(ruled) > 0 && c.traits.OpenID && !c.Detached {
		r.good("Rules look at %s: what user info does not tell of these is checked by a refresh, whose ID token has to repeat it.",
			strings.Join(ruled, ", "))
	}
	for _, w := range c.Warnings() {
		r.add(Finding{Warning, w, "A scope that was not granted, or a mapper that was taken away, lets them all in."})
	}
	if c.Detached {
		r.good("Sign-ins do not end with the session at %s (detached).", c.Name)
	} else {
		r.good("That a session has ended is learned within %v: %s.", c.CheckEvery, c.traits.Checks)
	}
	return r
}

func (r *ProbeResult) add(f Finding) { r.Findings = append(r.Findings, f) }

func (r *ProbeResult) good(format string, args ...any) {
	r.add(Finding{Verdict: Good, What: fmt.Sprintf(format, args...)})
}
