// Package lab tests an authorization server of any maker, from outside, against the requirements of
// docs/requirements.md (DL-06). It reads the metadata, registers clients, and sends right and wrong requests to each
// endpoint; it deletes the clients where the server offers that. With a person who signs in it redeems codes and
// refreshes tokens, too.
//
// It must not serve as a weapon: it asks only servers of this machine, and others that consent (see [Consent]); one
// request at a time, at most [MaxRequests], with a pause between those to other machines. It guesses no passwords.
package lab

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/metadata"
)

// The bounds of a run.
const (
	MaxRequests = 200
	pause       = 100 * time.Millisecond // between requests to another machine
)

// Verdict is how a check ended.
type Verdict string

// The verdicts. What a server does not offer is skipped.
const (
	Pass    Verdict = "pass"
	Fail    Verdict = "fail"
	Skipped Verdict = "skipped"
)

// Result is what was found about a requirement.
type Result struct {
	Requirement string  `json:"requirement"`
	Level       string  `json:"level"` // MUST or SHOULD
	What        string  `json:"what"`  // the requirement, in a sentence
	Verdict     Verdict `json:"verdict"`
	Why         string  `json:"why,omitempty"` // of a failure, or why it was skipped
}

// Report is what was found about a server.
type Report struct {
	Issuer   string    `json:"issuer"`
	At       time.Time `json:"at"`
	Requests int       `json:"requests"`
	Results  []Result  `json:"results"`
}

// Failed reports whether a MUST fails.
func (r Result) Failed() bool { return r.Verdict == Fail && r.Level == must }

// Failed reports whether one of the results is a MUST that fails.
func (r Report) Failed() bool { return slices.ContainsFunc(r.Results, Result.Failed) }

// Count is how many results have a verdict.
func (r Report) Count(v Verdict) (n int) {
	for _, x := range r.Results {
		if x.Verdict == v {
			n++
		}
	}
	return n
}

// Options are the options of Run.
type Options struct {
	Now       func() time.Time
	Transport http.RoundTripper // nil: that of net/http

	// ClientID and RedirectURI are of a client that is registered already, for a server at which none can register.
	// The redirect URI is on loopback.
	ClientID, RedirectURI string
	ClientSecret          string // of that client, when it is confidential
	// Resource is the MCP server that tokens are asked for; "": none is named.
	Resource string
	// Visit has a person sign in and consent at an authorization URL, and returns the URL at RedirectURI to which the
	// browser was sent back. nil: checks that need a person are skipped.
	Visit func(ctx context.Context, authorizeURL string) (*url.URL, error)
}

// Run tests the authorization server of an issuer. The error says why it could not be tested at all: ErrNoConsent,
// or that it does not answer.
func Run(ctx context.Context, issuer string, o Options) (Report, error) {
	b, err := newBench(issuer, o)
	if err != nil {
		return Report{}, err
	}
	if err := b.consented(ctx); err != nil {
		return Report{}, err
	}
	r := Report{Issuer: issuer, At: b.o.Now().UTC()}
	b.discover(ctx)
	for _, part := range []func(context.Context){
		b.metadata, b.keys, b.registration, b.authorization, b.token, b.others, b.signIn,
	} {
		if err := ctx.Err(); err != nil {
			return Report{}, err
		}
		part(ctx)
	}
	b.tidy(ctx)
	r.Requests, r.Results = b.requests, b.results
	return r, b.broken
}

// bench is one run: the server under test, and the results so far.
type bench struct {
	o        Options
	issuer   string
	client   *discovery.Client
	loopback bool
	requests int
	broken   error // the server is gone, or asks for too much

	server metadata.AuthorizationServer
	found  map[string]*answer // the metadata documents, by path
	app    *app               // nil: there is none

	results []Result
}
