// Package policy holds the decisions of the authorization server as pure
// functions: which resource a request means, which scopes it can have, whether a
// person must be asked. Nothing here reads a clock, a store or a request.
package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Catalogue is the set of resources that tokens can be issued for. It is immutable.
type Catalogue struct {
	resources []storage.Resource // the server's own ones last
	listed    int                // of the resources: those that are not its own
	byURI     map[string]int
	byOrigin  map[string]int // -1: several resources share the origin
	bound     int            // of the resources: those whose tokens have to be bound to a key
}

// NewCatalogue returns a catalogue of resources; the first is the default. Of two
// with the same canonical URI the first counts, so that the configuration goes
// before what was added at run time. Each alias is a resource of its own, behind the one that it
// is an alias of. What is the server's own comes before all others of its URI.
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
		return true // the origin means the resource
	}
	if _, shared := c.byOrigin[oauth.ResourceOrigin(r.URI)]; shared {
		i = -1
	}
	c.byOrigin[oauth.ResourceOrigin(r.URI)] = i
	return true
}

// aliasOf returns the resource that an alias stands for: r with the URI of the alias, and with a name by
// which people can tell the two apart.
func aliasOf(r storage.Resource, alias string) storage.Resource {
	r.Name = oauth.AliasName(r.Name, r.URI, alias)
	r.URI, r.AliasOf, r.Aliases = alias, r.URI, nil
	return r
}

// Resources returns all resources, the default first, and the aliases of each behind it.
func (c *Catalogue) Resources() []storage.Resource { return slices.Clone(c.resources[:c.listed]) }

// Own returns the resources of the server itself, which requests have to name.
func (c *Catalogue) Own() []storage.Resource { return slices.Clone(c.resources[c.listed:]) }

// Resolution is the resource that a request means, and how its parameters were read as
// that: "exact", or the differences that were overlooked, for the log.
type Resolution struct {
	storage.Resource
	Match string
}

// Resolve returns the one resource that the resource parameters of a request mean
// (RFC 8707 §2). None means the default resource: clients of MCP 2025-03-26 send
// none, and their tokens must have a concrete audience all the same (AS-109). The
// bare origin means the resource on it when there is just one (AS-110). Repeating
// one resource, in whatever spelling, is tolerated; two different ones, unknown and
// malformed ones are invalid_target.
func (c *Catalogue) Resolve(requested []string) (Resolution, error) {
	if len(c.resources) == 0 || len(requested) == 0 && c.listed == 0 {
		return Resolution{},
			oauth.NewError(oauth.InvalidTarget, "No protected resource is known to this authorization server.")
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

// difference says what was overlooked when raw was taken for the canonical URI.
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

// short is an address as a message can name it.
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
	return 0, oauth.NewError(oauth.InvalidTarget, // AS-105
		fmt.Sprintf("The MCP server %+q is not known to this authorization server. Its operator can add it.",
			short(raw)))
}

// Lookup returns the resource with a canonical URI.
func (c *Catalogue) Lookup(uri string) (storage.Resource, bool) {
	i, ok := c.byURI[uri]
	if !ok {
		return storage.Resource{}, false
	}
	return c.resources[i], true
}

// DemandProofs reports whether tokens for some of the resources have to be bound to a key of the client,
// and whether those for all of them have.
func (c *Catalogue) DemandProofs() (some, all bool) {
	return c.bound > 0, c.bound > 0 && c.bound == c.listed
}

// DefaultScopes returns the scopes that clients should ask for first, over all
// resources: many ask for everything that the metadata lists, so that list is what people are to be
// asked for at the first sign-in, and the rest is found by step-up.
func (c *Catalogue) DefaultScopes() oauth.Scopes {
	var out oauth.Scopes
	for _, r := range c.resources[:c.listed] {
		out = out.Union(DefaultScopes(r))
	}
	return out
}
