// Package lab tests any authorization server from outside against docs/requirements.md (DL-06). It
// reads the metadata, registers clients, and sends valid and invalid requests to each endpoint. It
// deletes the clients if the server supports that. If a user signs in, it also redeems codes and
// refreshes tokens.
//
// It must not serve as a weapon. It tests only servers on this machine and others that consent (see
// [Consent]). It sends one request at a time, at most [MaxRequests], and pauses between requests to
// another machine. It guesses no passwords.
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

// The limits of a run.
const (
	MaxRequests = 200
	pause       = 100 * time.Millisecond // between requests to another machine
)

// Verdict is the result of a check.
type Verdict string

// The verdicts. A check of a missing feature is skipped.
const (
	Pass    Verdict = "pass"
	Fail    Verdict = "fail"
	Skipped Verdict = "skipped"
)

// Result is the result for one requirement.
type Result struct {
	Requirement string  `json:"requirement"`
	Level       string  `json:"level"` // MUST or SHOULD
	What        string  `json:"what"`  // the requirement in one sentence
	Verdict     Verdict `json:"verdict"`
	Why         string  `json:"why,omitempty"` // reason of a failure or a skip
}

// Report contains the results for a server.
type Report struct {
	Issuer   string    `json:"issuer"`
	At       time.Time `json:"at"`
	Requests int       `json:"requests"`
	Results  []Result  `json:"results"`
}

// Failed reports whether the server violates a MUST.
func (r Result) Failed() bool { return r.Verdict == Fail && r.Level == must }

// Failed reports whether any result is a failed MUST.
func (r Report) Failed() bool { return slices.ContainsFunc(r.Results, Result.Failed) }

// Count returns the number of results with a verdict.
func (r Report) Count(v Verdict) (n int) {
	for _, x := range r.Results {
		if x.Verdict == v {
			n++
		}
	}
	return n
}

type Options struct {
	Now       func() time.Time
	Transport http.RoundTripper // default: the transport of net/http

	// ClientID and RedirectURI belong to an existing client, for servers without registration. The
	// redirect URI must be on loopback.
	ClientID, RedirectURI string
	ClientSecret          string // for a confidential client
	// Resource, if set, is the MCP server that tokens are requested for.
	Resource string
	// Visit lets a user sign in and consent at an authorization URL, and returns the resulting
	// redirect URL. Without it, checks that need a user are skipped.
	Visit func(ctx context.Context, authorizeURL string) (*url.URL, error)
}

// Run tests the authorization server of an issuer. It returns an error if the issuer is invalid,
// the server does not consent (ErrNoConsent), ctx ends, or the run exceeds MaxRequests. If the
// server does not respond, its checks fail.
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

// bench is a run with its results so far.
type bench struct {
	o        Options
	issuer   string
	client   *discovery.Client
	loopback bool
	requests int
	broken   error // the run exceeded MaxRequests

	server metadata.AuthorizationServer
	found  map[string]*answer // metadata documents by path
	app    *app               // nil without a client

	results []Result
}
