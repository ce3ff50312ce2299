package main

import (
	"context"
	"errors"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/internal/signin"
	"github.com/mcp-authd/mcp-authd/mcpclient"
	"github.com/mcp-authd/mcp-authd/oauth"
)

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
