package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/internal/signin"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// maxStepUps bounds how often one run signs in again because a call needs more (CL-21).
const maxStepUps = 5

// clearanceAgain is how long a call that waits for a person waits until it is made again.
const clearanceAgain = 3 * time.Second

// access is what a sign-in gives: the scopes, and what adds the token to requests.
type access struct {
	scopes oauth.Scopes
	by     http.RoundTripper
}

// present makes access of a token.
func (l *login) present(token oauth.TokenResponse, err error) (access, error) {
	if err != nil {
		return access{}, err
	}
	l.got(token)
	return access{oauth.ParseScopes(token.Scope), l.client.Present(token)}, nil
}

// obtain is a way to sign in.
type obtain struct {
	get   func(ctx context.Context, scopes oauth.Scopes, proof signin.Proof) (access, error)
	pages bool // the person who signs in can be shown a call on the way, by its scope
}

// stepUps is what the call of a tool has needed beyond the first sign-in.
type stepUps struct {
	count  int
	asked  oauth.Scopes
	proofs []signin.Proof
	waited bool // the person at the command line knows that the call waits
}

// signIn signs in, lists the tools, and makes the call; again as long as it needs more and gets it.
func (l *login) signIn(ctx context.Context, scopes oauth.Scopes, way obtain) error {
	have, err := way.get(ctx, scopes, signin.Proof{})
	if err != nil {
		return err
	}
	var so stepUps
	for {
		tools, err := l.client.Tools(ctx, l.url, have.by, l.call)
		var more *signin.NeedMore
		switch {
		case err == nil:
			l.step(signin.StepTools, tools, "%s", printable(strings.Join(tools.Names, ", ")))
			if l.call.Tool != "" && !l.flags.asJSON {
				return printJSON(l.std.out, tools.Result)
			}
			return nil
		case !errors.As(err, &more):
			return err
		case so.mustWait(more, have, way):
			if err := l.await(ctx, more, &so); err != nil {
				return err
			}
		default:
			if have, err = l.stepUp(ctx, more, have, way, &so); err != nil {
				return err
			}
		}
	}
}

// mustWait reports whether all that a call lacks is the permission of a person whom no sign-in brings to the page:
// there is no page on the way, or the sign-in has shown it, and it is for another person to decide.
func (so *stepUps) mustWait(more *signin.NeedMore, have access, way obtain) bool {
	scopes, clearance := more.Scopes.WithoutClearances()
	return clearance != "" && !more.Proof.Demands() && have.scopes.Has(scopes...) &&
		(!way.pages || so.asked.Has(oauth.ScopeClearance+clearance))
}

// await waits until the call may be made again, and tells once what it waits for.
func (l *login) await(ctx context.Context, more *signin.NeedMore, so *stepUps) error {
	if !so.waited {
		so.waited = true
		l.step(signin.StepTools, map[string]any{"waits": more.Text}, "%s waits for a person. The MCP server says: %s",
			l.call.Tool, more.Text)
	}
	select {
	case <-time.After(clearanceAgain):
		return nil
	case <-ctx.Done():
		return discovery.Fail(signin.StepTools, "Run the command again, or give more time with --timeout.",
			"no person has approved the call of %s in time", l.call.Tool)
	}
}

// stepUp signs in again with what the call needs (CL-20). What has been asked for in vain is not asked for again.
func (l *login) stepUp(
	ctx context.Context, more *signin.NeedMore, have access, way obtain, so *stepUps,
) (access, error) {
	ask, clearance := more.Scopes.WithoutClearances()
	why := "needs more scope"
	if clearance != "" && way.pages { // elsewhere it is no scope to ask for
		ask, why = more.Scopes, "needs the permission of a person for this call"
	}
	key, what, again := "need_scope", any(ask), so.asked.Has(ask...)
	if more.Proof.Demands() {
		key, what, again = "need_proof", more.Proof.String(), slices.Contains(so.proofs, more.Proof)
		why = "needs a stronger or more recent sign-in"
	}
	if again || so.count == maxStepUps {
		return have, refused(l.call.Tool, more, so)
	}
	so.count, so.asked, so.proofs = so.count+1, so.asked.Union(ask), append(so.proofs, more.Proof)
	l.step(signin.StepTools, map[string]any{key: what}, "%s %s (%s): signing in again", l.call.Tool, why, what)
	return way.get(ctx, have.scopes.Union(ask), more.Proof)
}

// refused says why there is no further step-up.
func refused(tool string, more *signin.NeedMore, so *stepUps) error {
	const lists = "On the server: mcp-authd resource list, mcp-authd attempt list"
	why := "it was asked for, and not granted"
	switch {
	case more.Proof.Demands():
		return discovery.Fail(signin.StepTools,
			"Can this person prove it? A passkey or an app is added on the account page. "+lists,
			"%s still needs a stronger or more recent sign-in (%s) after %d more sign-ins", tool, more.Proof, so.count)
	case len(more.Scopes) == 0:
		why = "the MCP server does not say which"
	case so.count == maxStepUps:
		why = "it is another one each time"
	}
	return discovery.Fail(signin.StepTools,
		"May this person have these scopes? "+lists,
		"%s still needs more scope (%s) after %d more sign-ins: %s", tool, more.Scopes, so.count, why)
}
