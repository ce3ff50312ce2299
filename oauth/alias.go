package oauth

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// MaxAliases is the maximum number of aliases of one resource.
const MaxAliases = 16

// CanonicalAlias returns the canonical spelling of an alias of a resource. An alias is another URL
// of the same MCP server, under which a client can connect once more as another user: clients keep
// tokens by URL. It must be on the origin of the resource, so that no other host becomes trusted.
// Its path must have plain characters only, because requests are matched to it by path, however a
// client escapes the path.
func CanonicalAlias(resource, alias string) (string, error) {
	of, err := CanonicalResource(resource)
	if err != nil {
		return "", err
	}
	uri, err := CanonicalResource(alias)
	if err != nil {
		return "", err
	}
	origin := ResourceOrigin(uri)
	at := uri[len(origin):]
	switch {
	case origin != ResourceOrigin(of):
		return "", fmt.Errorf("an alias must be on the origin of its resource, %s", ResourceOrigin(of))
	case uri == of:
		return "", errors.New("an alias must not be the resource itself")
	case at == "":
		return "", errors.New("an alias must have a path")
	case !plainPath(at) || path.Clean(at) != at:
		return "", errors.New(
			"the path of an alias must have only letters, digits and - . _ ~ @ :, no query, and no empty segment")
	case strings.HasPrefix(at+"/", "/.well-known/"):
		return "", errors.New("an alias must not be below /.well-known")
	case at == pathOf(of):
		return "", errors.New("an alias must have another path than its resource")
	}
	return uri, nil
}

// CanonicalAliases applies CanonicalAlias to all aliases of a resource. It returns an error for
// duplicates and for more than MaxAliases.
func CanonicalAliases(resource string, aliases []string) (out []string, err error) {
	if len(aliases) > MaxAliases {
		return nil, fmt.Errorf("a resource may have %d aliases at most", MaxAliases)
	}
	for _, alias := range aliases {
		uri, err := CanonicalAlias(resource, alias)
		switch {
		case err != nil:
			return nil, fmt.Errorf("alias %q: %w", alias, err)
		case slices.Contains(out, uri):
			return nil, fmt.Errorf("alias %q is listed twice", alias)
		}
		out = append(out, uri)
	}
	return out, nil
}

// AliasName returns the display name of an alias: the resource's name with the part of the URL that
// differs, such as "Notes (work)" for https://mcp.example.com/mcp@work. For a resource without a
// name it returns the alias.
func AliasName(name, resource, alias string) string {
	if name == "" || name == resource {
		return alias
	}
	rest, ok := strings.CutPrefix(alias, resource)
	if !ok || !strings.ContainsAny(rest[:1], "/@:-._~") {
		rest = pathOf(alias)
	}
	return name + " (" + strings.TrimLeft(rest, "/@:-._~") + ")"
}

func pathOf(canonical string) string {
	at, _, _ := strings.Cut(canonical[len(ResourceOrigin(canonical)):], "?")
	return at
}

// plainPath reports whether s consists of characters that clients and proxies leave unchanged, or
// escape without ambiguity.
func plainPath(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("/-._~@:", r))
	})
}
