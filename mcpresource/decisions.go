package mcpresource

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Decisions takes what a guard decides, for the operator of the authorization server: they find by a
// reference why a client was refused, and see whether an attempt to connect got as far as a tool. Neither
// method may block. authserver.Server has both, and in another process a Reporter.
type Decisions interface {
	// Refused takes a request that is about to be answered with 401 or 403. It returns a reference of
	// letters and digits, by which people name this request, or "". The client gets it in X-Request-Id and
	// in the body.
	Refused(r *http.Request, d oauth.Decision) (reference string)
	// LetThrough takes the first request of a grant that was let through, and its first call of a tool: of
	// those that this process has seen in the last hour.
	LetThrough(ctx context.Context, d oauth.Decision)
}

// Readings are Decisions that take which clients read the RFC 9728 document of a resource as well: the first
// step of most attempts. authserver.Server is one. Read may not block.
type Readings interface {
	Read(r *http.Request, resource string)
}

// told is the document of a resource, with Readings told of those who read it.
func (g *Guard) told(resource string, document http.Handler) http.Handler {
	to, ok := g.c.Decisions.(Readings)
	if !ok {
		return document
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			to.Read(r, resource)
		}
		document.ServeHTTP(w, r)
	})
}

const (
	// headerReference has the reference of a refusal. It is that of the authorization server's answers.
	headerReference = "X-Request-Id"
	// maxPassed bounds the tokens and grants that are remembered to have been let through, and passedFor says
	// for how long.
	maxPassed = 20_000
	passedFor = time.Hour
	// maxReference bounds what is put into headers.
	maxReference = 64
)

// refer has Decisions name a refusal, and puts the name where clients and people find it: in a header, which
// every client ignores that does not know it, and in the body, which they show. The challenge stays the
// same each time: clients compare it with the one before, to see that another sign-in has not helped.
func (g *Guard) refer(r *http.Request, p *passage, refused *refusal) (reference string) {
	if g.c.Decisions == nil || refused.status != http.StatusUnauthorized && refused.status != http.StatusForbidden {
		return ""
	}
	d := g.decision(p, firstOperation(p))
	d.HTTPMethod, d.Status, d.Outcome, d.Description = r.Method, refused.status, string(refused.outcome), refused.text
	if refused.err != nil && refused.outcome != OutcomeForbidden { // Check's own words are for its own log
		d.Reason = cutText(refused.err.Error())
	}
	if c := refused.challenge; c != nil {
		d.Error, d.Scope = c.Error, c.Scope.String()
	}
	if d.Scheme = p.presented.Scheme; d.Scheme == "" && r.Header.Get("Authorization") != "" {
		d.Scheme = "malformed"
	}
	return g.named(r, d)
}

// letThrough tells Decisions of a request that goes on, unless the like of its grant is known. What a grant
// is takes reading the claims, so that tokens are remembered as well.
func (g *Guard) letThrough(ctx context.Context, p *passage) {
	if g.c.Decisions == nil || p.principal == nil {
		return
	}
	op, kind := firstOperation(p), ""
	if op.Method == "tools/call" {
		kind = " tool"
	}
	until := g.c.Now().Add(passedFor)
	if id := p.principal.TokenID; id != "" && !g.passed.Add(id+kind, struct{}{}, until) {
		return
	}
	d := g.decision(p, op)
	if d.GrantID == "" || !g.passed.Add("grant "+d.GrantID+kind, struct{}{}, until) {
		return
	}
	d.Outcome = string(OutcomeAllowed)
	g.c.Decisions.LetThrough(ctx, d)
}

func (g *Guard) decision(p *passage, op Operation) oauth.Decision {
	op = op.record(false)
	d := oauth.Decision{At: p.began, Resource: p.at.resource, Method: op.Method, Name: op.Name}
	if who := p.principal; who != nil && slices.Contains(g.c.AuthorizationServers, who.Issuer) {
		d.Issuer, d.ClientID, d.GrantID, d.Subject = who.Issuer, who.ClientID, who.GrantID(), who.Subject
	}
	return d
}

// firstOperation is what a request was for, as far as it was read.
func firstOperation(p *passage) Operation {
	if len(p.envelope.Messages) == 0 {
		return Operation{}
	}
	return operationOf(p.envelope.Messages[0])
}

func isAlphanumeric(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
