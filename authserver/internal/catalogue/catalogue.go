// Package catalogue caches the configured and the stored protected resources, and finds the
// resource of a request.
package catalogue

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/recent"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Catalogue is the current policy.Catalogue: the configured and the stored resources, at most a few
// seconds old.
type Catalogue struct {
	current recent.Value[*policy.Catalogue]
}

// New returns a catalogue and reads it for the first time.
func New(
	ctx context.Context, configured []storage.Resource, store storage.Resources, now func() time.Time,
) (*Catalogue, error) {
	read := func(ctx context.Context) (*policy.Catalogue, error) {
		stored, err := store.ListResources(ctx)
		if err != nil {
			return nil, err
		}
		return policy.NewCatalogue(slices.Concat(configured, stored))
	}
	c := &Catalogue{recent.Value[*policy.Catalogue]{Read: read, Now: now}}
	_, err := c.Load(ctx)
	return c, err
}

// Load returns the catalogue. If the store fails, it returns the previous one: resources change
// rarely, and a request that needs the store gets its error anyway.
func (c *Catalogue) Load(ctx context.Context) (*policy.Catalogue, error) { return c.current.Load(ctx) }

// Resolve returns the resource for the resource parameters of a request (RFC 8707 §2), and notes
// them for the log. Its error is an *oauth.Error.
func (c *Catalogue) Resolve(ctx context.Context, requested []string) (policy.Resolution, error) {
	current, err := c.Load(ctx)
	if err != nil {
		return policy.Resolution{}, refusal.Unavailable(err)
	}
	request.Of(ctx).Note(slog.String("resource", asked(requested)))
	resource, err := current.Resolve(requested)
	if err != nil {
		expect(ctx, requested, current)
		return policy.Resolution{}, err
	}
	request.Of(ctx).Note(slog.String("resource", resource.URI), slog.String("resource_match", resource.Match))
	return resource, nil
}

// asked returns the requested resources in a form for the log.
func asked(requested []string) string {
	var out []string
	for _, uri := range requested {
		out = append(out, oauth.Redacted(uri))
	}
	return strings.Join(out, " ")
}

// expect notes the existing resources for the log. The server's own resources are included only if
// a requested URI has the same origin: other clients must not use them.
func expect(ctx context.Context, requested []string, current *policy.Catalogue) {
	var known []string
	for _, r := range current.Own() {
		here := oauth.ResourceOrigin(r.URI)
		if slices.ContainsFunc(requested, func(uri string) bool { return oauth.ResourceOrigin(uri) == here }) {
			known = append(known, r.URI)
		}
	}
	for _, r := range current.Resources() {
		known = append(known, r.URI)
	}
	request.Of(ctx).Expect("resource", strings.Join(requested, " "), known)
}

// Named returns the canonical resource of a token request, or "" if it names none (RFC 8707 §2.2,
// AS-108). Its error is an *oauth.Error.
func (c *Catalogue) Named(ctx context.Context, requested []string) (string, error) {
	if len(requested) == 0 {
		return "", nil
	}
	resource, err := c.Resolve(ctx, requested)
	return resource.URI, err
}

// Lookup returns a resource by its canonical URI, and false if it does not exist. Its error is an
// *oauth.Error.
func (c *Catalogue) Lookup(ctx context.Context, uri string) (storage.Resource, bool, error) {
	current, err := c.Load(ctx)
	if err != nil {
		return storage.Resource{}, false, refusal.Unavailable(err)
	}
	resource, ok := current.Lookup(uri)
	return resource, ok, nil
}

// DemandProofs returns policy.Catalogue.DemandProofs. Its error is an *oauth.Error.
func (c *Catalogue) DemandProofs(ctx context.Context) (some, all bool, err error) {
	current, err := c.Load(ctx)
	if err != nil {
		return false, false, refusal.Unavailable(err)
	}
	some, all = current.DemandProofs()
	return some, all, nil
}
