package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/signin"
	"github.com/mcp-authd/mcp-authd/internal/toolcall"
	"github.com/mcp-authd/mcp-authd/mcpclient"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// clearanceAgain is the interval between attempts of a call that waits for approval.
const clearanceAgain = 3 * time.Second

// access is the result of a sign-in: the scopes, and a transport that adds the token to requests.
type access struct {
	scopes oauth.Scopes
	by     http.RoundTripper
}

// present returns the access for a token.
func (l *login) present(token oauth.TokenResponse, err error) (access, error) {
	if err != nil {
		return access{}, err
	}
	l.got(token)
	l.kept.Granted(token, time.Now())
	return access{oauth.ParseScopes(token.Scope), l.client.Present(token)}, nil
}

// obtain is a method to sign in.
type obtain struct {
	get   func(ctx context.Context, scopes oauth.Scopes, proof signin.Proof) (access, error)
	pages bool // the user can be shown a call during sign-in, through its scope
}

// stepUps records the step-ups that a tool call has needed so far.
type stepUps struct {
	signin.StepUps
	waited bool // the user knows that the call waits
}

// signIn signs in, lists the tools, and makes the call. It repeats that while the call needs more
// permissions and gets them.
func (l *login) signIn(ctx context.Context, scopes oauth.Scopes, way obtain) error {
	have, err := way.get(ctx, scopes, signin.Proof{})
	if err != nil {
		return err
	}
	var so stepUps
	for {
		tools, err := toolcall.Make(ctx, l.url, have.by, l.call)
		var more *signin.NeedMore
		switch {
		case err == nil:
			l.step(signin.StepTools, tools, "%s", label.Printable(strings.Join(tools.Names, ", ")))
			if l.call.Tool != "" && !l.flags.asJSON {
				return printJSON(l.std.out, tools.Result)
			}
			return nil
		case !errors.As(err, &more):
			return err
		case so.MustWait(*more, have.scopes, way.pages):
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

// await waits until the call may be repeated, and says once why it waits.
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

// stepUp signs in again with the permissions that the call needs (CL-20). It does not repeat a
// request that was made in vain.
func (l *login) stepUp(
	ctx context.Context, more *signin.NeedMore, have access, way obtain, so *stepUps,
) (access, error) {
	ask, ok := so.Ask(*more, way.pages)
	if !ok {
		return have, refused(l.call.Tool, more, so)
	}
	key, what, why := "need_scope", any(ask), "needs more scope"
	if _, clearance := ask.WithoutClearances(); clearance != "" {
		why = "needs the permission of a person for this call"
	}
	if more.Proof.Demands() {
		key, what, why = "need_proof", more.Proof.String(), "needs a stronger or more recent sign-in"
	}
	l.step(signin.StepTools, map[string]any{key: what}, "%s %s (%s): signing in again", l.call.Tool, why, what)
	return way.get(ctx, have.scopes.Union(ask), more.Proof)
}

// refused explains why there is no further step-up.
func refused(tool string, more *signin.NeedMore, so *stepUps) error {
	const lists = "On the server: mcp-authd resource list, mcp-authd attempt list"
	why := "it was asked for, and not granted"
	switch {
	case more.Proof.Demands():
		return discovery.Fail(signin.StepTools,
			"Can this person prove it? A passkey or an app is added on the account page. "+lists,
			"%s still needs a stronger or more recent sign-in (%s) after %d more sign-ins", tool, more.Proof, so.Count)
	case len(more.Scopes) == 0:
		why = "the MCP server does not say which"
	case so.Exhausted():
		why = "it is another one each time"
	}
	return discovery.Fail(signin.StepTools,
		"May this person have these scopes? "+lists,
		"%s still needs more scope (%s) after %d more sign-ins: %s", tool, more.Scopes, so.Count, why)
}

// anyPlatform is the value of --workload without an argument.
const anyPlatform = "any"

// asWorkload finds the platform that identifies this program.
func (l *login) asWorkload() (err error) {
	if l.flags.device || l.flags.clientID != "" {
		return errors.New("--workload signs in with no registration and no person: leave --device and --client-id out")
	}
	name := l.flags.workload
	if name == anyPlatform {
		name = ""
	}
	if l.by, err = mcpclient.Platform(name); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "mcpclient: "))
	}
	return nil
}

// byWorkload signs in with this program's identity from the platform.
func (l *login) byWorkload(ctx context.Context) error {
	get := func(ctx context.Context, scopes oauth.Scopes, proof signin.Proof) (access, error) {
		if proof.Demands() {
			return access{}, discovery.Fail(signin.StepTools, "Leave --workload out, and sign in as a person.",
				"%s needs a person who has proved who they are (%s)", l.call.Tool, proof)
		}
		config := mcpclient.Config{
			Server: l.url,
			Token:  l.by,
			Scopes: scopes,
			Trace:  func(s mcpclient.Step) { l.step(s.Name, s.Data, "%s", s.Text) },
		}
		if l.flags.dpop {
			config.DPoP = &mcpclient.DPoP{}
		}
		c, err := mcpclient.Workload(ctx, config)
		var e *mcpclient.Error
		if errors.As(err, &e) {
			err = &discovery.Error{Step: e.Step, Why: e.Why, Advice: e.Advice}
		}
		if err != nil {
			return access{}, err
		}
		return access{c.Scopes(), c}, nil
	}
	return l.signIn(ctx, l.flags.scopes, obtain{get: get})
}
