// Package policy contains the decisions of the authorization server as pure functions: which
// resource a request means, which scopes it can have, and whether to ask the user. It reads no
// clock, store or request.
package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Catalogue is the immutable set of resources that tokens can be issued for.
type Catalogue struct {
	resources []storage.Resource // the server's own resources last
	listed    int                // number of resources without the server's own
	byURI     map[string]int
	byOrigin  map[string]int // -1: several resources share the origin
	bound     int            // number of resources that require key-bound tokens
}

// NewCatalogue returns a catalogue of resources. The first is the default. Of duplicate canonical
// URIs the first counts, so that the configuration precedes resources added at run time. Each alias
// is a separate resource, after the one that it belongs to. The server's own resources take
// precedence over all others with the same URI.
func NewCatalogue(resources []storage.Resource) (*Catalogue, error) {
	c := &Catalogue{byURI: map[string]int{}, byOrigin: map[string]int{}}
	own := map[string]storage.Resource{}
	for _, r := range resources {
		if r.Own {
			own[r.URI] = r
		}
	}
	for _, r := range resources {
		uri, err := oauth.CanonicalResource(r.URI)
		if err != nil {
			return nil, fmt.Errorf("resource %q: %w", r.URI, err)
		}
		aliases, err := oauth.CanonicalAliases(uri, r.Aliases)
		if err != nil {
			return nil, fmt.Errorf("resource %q: %w", r.URI, err)
		}
		r.URI = uri
		if _, taken := own[uri]; taken || !c.add(r) {
			continue
		}
		for _, alias := range aliases {
			c.add(aliasOf(r, alias))
		}
	}
	c.listed = len(c.resources)
	for _, uri := range slices.Sorted(maps.Keys(own)) {
		c.byURI[uri] = len(c.resources)
		c.resources = append(c.resources, own[uri])
	}
	return c, nil
}

// add appends a resource, unless its URI is taken.
func (c *Catalogue) add(r storage.Resource) bool {
	if _, dup := c.byURI[r.URI]; dup {
		return false
	}
	if r.Name == "" {
		r.Name = r.URI
	}
	i := len(c.resources)
	c.resources = append(c.resources, r)
	c.byURI[r.URI] = i
	if r.DPoP == storage.DPoPRequired {
		c.bound++
	}
	if r.AliasOf != "" {
		return true // the origin refers to the main resource
	}
	if _, shared := c.byOrigin[oauth.ResourceOrigin(r.URI)]; shared {
		i = -1
	}
	c.byOrigin[oauth.ResourceOrigin(r.URI)] = i
	return true
}

// aliasOf returns the resource for an alias: r with the alias as its URI, and a name that
// distinguishes the two for users.
func aliasOf(r storage.Resource, alias string) storage.Resource {
	r.Name = oauth.AliasName(r.Name, r.URI, alias)
	r.URI, r.AliasOf, r.Aliases = alias, r.URI, nil
	return r
}

// Resources returns all resources, the default first, each followed by its aliases.
func (c *Catalogue) Resources() []storage.Resource { return slices.Clone(c.resources[:c.listed]) }

// Own returns the server's own resources, which requests must name explicitly.
func (c *Catalogue) Own() []storage.Resource { return slices.Clone(c.resources[c.listed:]) }

// Resolution is the resource that a request refers to. Match records for the log how its parameters
// matched: "exact", or the ignored differences.
type Resolution struct {
	storage.Resource
	Match string
}

// Resolve returns the resource that the resource parameters of a request refer to (RFC 8707 §2).
// Without parameters it is the default resource: clients of MCP 2025-03-26 send none, and their
// tokens must still have a concrete audience (AS-109). A bare origin refers to the only resource on
// it (AS-110). Repeating one resource, in any spelling, is tolerated. Different, unknown or
// malformed resources are invalid_target.
func (c *Catalogue) Resolve(requested []string) (Resolution, error) {
	if len(c.resources) == 0 || len(requested) == 0 && c.listed == 0 {
		return Resolution{},
			sentence.NewError(oauth.InvalidTarget, "No protected resource is known to this authorization server.", "no_resource")
	}
	if len(requested) == 0 {
		return Resolution{c.resources[0], "absent: the default"}, nil
	}
	found := -1
	var differences []string
	for _, raw := range requested {
		i, err := c.find(raw)
		switch {
		case err != nil:
			return Resolution{}, err
		case found >= 0 && found != i:
			return Resolution{},
				oauth.NewError(oauth.InvalidTarget, "A token can be issued for one resource at a time.")
		case found >= 0:
			differences = append(differences, "named twice")
		}
		found = i
		differences = append(differences, difference(raw, c.resources[i].URI)...)
	}
	slices.Sort(differences)
	match := strings.Join(slices.Compact(differences), ", ")
	if match == "" {
		match = "exact"
	}
	return Resolution{c.resources[found], match}, nil
}

// difference returns the ignored differences between raw and the canonical URI.
func difference(raw, uri string) (out []string) {
	if raw == uri {
		return nil
	}
	trimmed := strings.TrimRight(raw, "/")
	if trimmed != raw {
		out = append(out, "trailing slash")
	}
	folded, err := oauth.CanonicalResource(raw)
	switch {
	case err != nil || folded != uri:
		return append(out, "origin of the resource")
	case trimmed == uri:
		return out
	}
	if lower := oauth.LowerOrigin(trimmed); lower != trimmed {
		out, trimmed = append(out, "upper case"), lower
	}
	if trimmed != uri {
		out = append(out, "default port")
	}
	return out
}

// short cuts an address for use in a message.
func short(uri string) string {
	const longest = 200
	return uri[:min(len(uri), longest)]
}

func (c *Catalogue) find(raw string) (int, error) {
	uri, err := oauth.CanonicalResource(raw)
	if err != nil {
		return 0, oauth.NewError(oauth.InvalidTarget,
			"The resource parameter is not an absolute URI without fragment.").Because(err)
	}
	if i, ok := c.byURI[uri]; ok {
		return i, nil
	}
	if i, ok := c.byOrigin[uri]; ok && i >= 0 {
		return i, nil
	}
	return 0, sentence.NewError(oauth.InvalidTarget, // AS-105
		"The MCP server {address} is not known to this authorization server. Its operator can add it.",
		"server_unknown", "address", strconv.QuoteToASCII(short(raw)))
}

// Lookup returns the resource with a canonical URI.
func (c *Catalogue) Lookup(uri string) (storage.Resource, bool) {
	i, ok := c.byURI[uri]
	if !ok {
		return storage.Resource{}, false
	}
	return c.resources[i], true
}

// DemandProofs reports whether some, and whether all, of the resources require tokens bound to a
// key of the client.
func (c *Catalogue) DemandProofs() (some, all bool) {
	return c.bound > 0, c.bound > 0 && c.bound == c.listed
}

// DefaultScopes returns the scopes that clients should request first, over all resources. Many
// clients request everything that the metadata lists. The list therefore contains only the scopes
// for the first sign-in, and clients get the others by step-up.
func (c *Catalogue) DefaultScopes() oauth.Scopes {
	var out oauth.Scopes
	for _, r := range c.resources[:c.listed] {
		out = out.Union(DefaultScopes(r))
	}
	return out
}
