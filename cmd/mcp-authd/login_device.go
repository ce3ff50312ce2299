package main

import (
	"context"
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/qr"
	"github.com/mcp-authd/mcp-authd/internal/signin"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// byDevice signs in with a code that the user approves on another device (RFC 8628).
func (l *login) byDevice(ctx context.Context, server signin.Server, resource string, scopes oauth.Scopes) error {
	if err := l.identify(func() (signin.Credentials, error) {
		return l.client.RegisterDevice(ctx, server)
	}); err != nil {
		return err
	}
	get := func(ctx context.Context, scopes oauth.Scopes, proof signin.Proof) (access, error) {
		return l.present(l.approveElsewhere(ctx, server, resource, scopes, proof))
	}
	return l.signIn(ctx, scopes, obtain{get: get})
}

func (l *login) approveElsewhere(
	ctx context.Context, server signin.Server, resource string, scopes oauth.Scopes, proof signin.Proof,
) (oauth.TokenResponse, error) {
	request, err := l.client.BeginDevice(ctx, server, l.cred, resource, scopes, proof)
	if err != nil {
		return oauth.TokenResponse{}, err
	}
	l.showDevice(request)
	return l.client.AwaitDevice(ctx, server, l.cred, request, resource)
}

// showDevice shows the instructions for the other device. The device code stays here.
func (l *login) showDevice(r signin.DeviceRequest) {
	l.step(signin.StepDevice, map[string]any{
		"user_code": r.UserCode, "verification_uri": r.URI, "verification_uri_complete": r.Complete,
		"expires_in": r.ExpiresIn,
	}, "open %s on any device and type the code %s (good for %s)", r.URI, r.UserCode,
		label.Count(r.ExpiresIn/60, "minute", "minutes"))
	if l.flags.asJSON || r.Complete == "" {
		return
	}
	if code, err := qr.Text(r.Complete); err == nil {
		fmt.Fprintf(l.std.out, "\n%s\n", code)
	}
}
