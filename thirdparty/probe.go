package thirdparty

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// ProbeResult is the state of one connector, for the administrator.
type ProbeResult struct {
	Connector, Name, Type string
	// RedirectURI must be registered at the provider, exactly as it is. LogoutURI is for providers
	// with back-channel logout, and "" for others.
	RedirectURI, LogoutURI string
	Findings               []Finding
}

// Verdict rates a finding.
type Verdict string

// The verdicts.
const (
	Good    Verdict = "ok"
	Warning Verdict = "warning" // works, but could be better
	Problem Verdict = "problem" // does not work
)

// Finding is the result of one check.
type Finding struct {
	Verdict Verdict
	What    string // the observation
	Advice  string // the next step, "" for none
}

// Healthy reports whether no finding is a Problem.
func (r ProbeResult) Healthy() bool {
	return !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Verdict == Problem })
}

// Probe examines every provider from this machine, for the doctor command: whether it is reachable,
// has the expected identity and accepts the client credentials, and which features it offers. It
// signs no user in and changes nothing.
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
	if ruled := c.claims(); len(ruled) > 0 && c.traits.OpenID && !c.Detached {
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
