package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/metadata"
)

// discover reads the metadata from every well-known path.
func (b *bench) discover(ctx context.Context) {
	first := ""
	for _, path := range metadata.AuthorizationServerPaths(b.issuer) {
		a, err := b.get(ctx, discovery.Origin(b.issuer)+path, http.Header{"Accept": {"application/json"}})
		if err != nil || a.status != http.StatusOK {
			continue
		}
		var s metadata.AuthorizationServer
		if json.Unmarshal(a.body, &s) != nil {
			continue
		}
		b.found[path] = a
		if first == "" {
			first, b.server = path, s
		}
	}
}

// document returns the first metadata document whose path contains word, or nil.
func (b *bench) document(word string) *answer {
	for _, path := range metadata.AuthorizationServerPaths(b.issuer) {
		if a := b.found[path]; a != nil && strings.Contains(path, word) {
			return a
		}
	}
	return nil
}

func (b *bench) metadata(ctx context.Context) {
	const publishes = "metadata is published where clients look for it (RFC 8414, OpenID Connect Discovery)"
	if len(b.found) == 0 {
		b.want("AS-14", must, publishes, false, "no document at the well-known places of %s", b.issuer)
		return
	}
	b.want("AS-14", must, publishes, true, "")
	oauthDoc, openid := b.document("oauth-authorization-server"), b.document("openid-configuration")
	b.want("AS-18", should, "both documents are published, for clients that look at one of the two",
		oauthDoc != nil && openid != nil, "%s", one(oauthDoc == nil, "there is no oauth-authorization-server document",
			"there is no openid-configuration document"))
	doc := oauthDoc
	if doc == nil {
		doc = openid
	}
	s := b.server
	b.want("AS-20", must, "the issuer in the document is the identifier, character for character", s.Issuer == b.issuer,
		"it is %q", s.Issuer)
	u, err := url.Parse(s.Issuer)
	b.want("AS-21", must, "the issuer is an https URL (http on this machine) without query and fragment",
		err == nil && discovery.CheckURL(s.Issuer) == nil && u.RawQuery == "" && u.Fragment == "", "it is %q", s.Issuer)
	b.endpoints()
	b.want("AS-22", must, "it is application/json, and members that would be empty lists are left out",
		doc.is("application/json") && !bytes.Contains(squeezed(doc.body), []byte(":[]")), "Content-Type: %s",
		doc.header.Get("Content-Type"))
	b.want("AS-23", must, "it has the endpoints, and the response type code", s.AuthorizationEndpoint != "" &&
		s.TokenEndpoint != "" && slices.Contains(s.ResponseTypes, "code"), "response types: %v", s.ResponseTypes)
	b.want("AS-24", must, "code_challenge_methods_supported has S256, or clients stop",
		slices.Contains(s.CodeChallengeMethods, "S256"), "it has %v", s.CodeChallengeMethods)
	b.want("AS-25", should, "grant_types_supported is stated: without it, implicit is meant", len(s.GrantTypes) > 0,
		"it is missing")
	b.want("AS-26", should, "token_endpoint_auth_methods_supported is stated, with none for public clients",
		slices.Contains(s.TokenAuthMethods, "none"), "it is %v", s.TokenAuthMethods)
	b.want("AS-03", must, "neither the implicit grant nor the password grant is offered",
		!slices.Contains(s.GrantTypes, "password") && !slices.Contains(s.ResponseTypes, "token"),
		"grant types: %v, response types: %v", s.GrantTypes, s.ResponseTypes)
	if slices.Contains(s.TokenAuthMethods, "private_key_jwt") {
		b.want("AS-27", must, "its algorithms go with private_key_jwt, and none is not among them",
			len(s.TokenAuthAlgorithms) > 0 && !slices.Contains(s.TokenAuthAlgorithms, "none"), "it is %v",
			s.TokenAuthAlgorithms)
	}
	b.want("AS-31", should, "scopes_supported lists the scopes", len(s.ScopesSupported) > 0, "it is missing")
	if openid != nil {
		var o metadata.AuthorizationServer
		err := json.Unmarshal(openid.body, &o)
		b.want("AS-33", must, "openid-configuration has jwks_uri, subject_types_supported and "+
			"id_token_signing_alg_values_supported, or clients that check its schema refuse it",
			err == nil && o.JWKSURI != "" && len(o.SubjectTypes) > 0 && len(o.IDTokenAlgorithms) > 0, "one is missing")
	}
	b.readable(ctx, doc)
}

func (b *bench) endpoints() {
	s := b.server
	var clear []string
	for _, endpoint := range []string{
		s.AuthorizationEndpoint, s.TokenEndpoint, s.JWKSURI, s.RegistrationEndpoint, s.RevocationEndpoint,
		s.IntrospectionEndpoint, s.PushedRequestEndpoint, s.DeviceAuthorizationEndpoint,
	} {
		if endpoint != "" && discovery.CheckURL(endpoint) != nil {
			clear = append(clear, endpoint)
		}
	}
	b.want("AS-01", must, "each endpoint is https (http on this machine)", len(clear) == 0, "%v", clear)
}

// readable checks that browsers and clients of other revisions can read the metadata.
func (b *bench) readable(ctx context.Context, doc *answer) {
	a, err := b.get(ctx, doc.at.String(), http.Header{"Mcp-Protocol-Version": {"1999-01-01"}})
	b.judge("AS-13", should, "an unknown MCP-Protocol-Version does not break it", a, err,
		func(a *answer) bool { return a.status == http.StatusOK })
	a, err = b.get(ctx, doc.at.String(), http.Header{"Origin": {"https://app.example.com"}})
	b.judge("AS-11", should, "clients in browsers may read it (CORS)", a, err,
		func(a *answer) bool { return a.header.Get("Access-Control-Allow-Origin") != "" })
}

// keys checks the key set.
func (b *bench) keys(ctx context.Context) {
	const what = "the key set can be read, and has public keys alone"
	if b.server.JWKSURI == "" {
		b.skip("AS-32", must, what, "there is no jwks_uri")
		return
	}
	a, err := b.get(ctx, b.server.JWKSURI, nil)
	b.judge("AS-32", must, what, a, err, func(a *answer) bool {
		var set struct {
			Keys []map[string]any `json:"keys"`
		}
		if a.status != http.StatusOK || json.Unmarshal(a.body, &set) != nil || len(set.Keys) == 0 {
			return false
		}
		return !slices.ContainsFunc(set.Keys, func(k map[string]any) bool {
			return k["d"] != nil || k["k"] != nil || k["kty"] == "oct"
		})
	})
}

func one(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// squeezed removes whitespace from JSON, so that empty lists look the same.
func squeezed(text []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return text
	}
	return out.Bytes()
}
