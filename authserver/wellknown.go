package authserver

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/recent"
	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// discovery serves the metadata documents. They contain scopes and resources, so they are composed
// again when these change, and otherwise served as fixed bytes.
type discovery struct {
	server     *Server
	assertions recent.Value[assertions]

	mu      sync.Mutex // guards the following fields
	from    published
	current http.Handler
}

// published is the part of the documents that can change while the server runs.
type published struct {
	catalog    *policy.Catalogue
	assertions assertions
}

// assertions reports which assertions are accepted and issued.
type assertions struct {
	enterprise, workload bool // issuers of these kinds are trusted
	made                 bool // audiences for ID-JAGs are registered
}

// newDiscovery reads the content of the documents once, so that they are available without the
// store.
func newDiscovery(ctx context.Context, s *Server) (*discovery, error) {
	d := &discovery{server: s}
	d.assertions = recent.Value[assertions]{Read: d.readAssertions, Now: s.cfg.Now}
	_, err := d.assertions.Load(ctx)
	return d, err
}

func (d *discovery) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, err := d.handler(r.Context())
	if err != nil {
		d.server.writeError(w, r, refusal.Unavailable(err))
		return
	}
	h.ServeHTTP(w, r)
}

func (d *discovery) handler(ctx context.Context) (http.Handler, error) {
	catalog, err := d.server.catalog.Load(ctx)
	if err != nil {
		return nil, err
	}
	assertions, err := d.assertions.Load(ctx)
	if err != nil {
		return nil, err
	}
	now := published{catalog, assertions}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.from == now {
		return d.current, nil
	}
	document := d.server.metadata(catalog)
	d.server.addAssertions(&document, assertions)
	mux := http.NewServeMux()
	if err := metadata.MountAuthorizationServer(mux, document); err != nil {
		return nil, err
	}
	d.from, d.current = now, mux
	return mux, nil
}

func (d *discovery) readAssertions(ctx context.Context) (out assertions, err error) {
	if trusted := d.server.cfg.Trust; trusted != nil {
		if out.enterprise, out.workload, err = trusted.Offers(ctx); err != nil {
			return out, err
		}
	}
	audiences, err := d.server.cfg.Store.ListAudiences(ctx)
	out.made = len(audiences) > 0
	return out, err
}

// addAssertions adds the accepted assertions while an issuer is trusted, without its name (AS-180,
// AS-198), and the issuing of ID-JAGs (AS-196).
func (s *Server) addAssertions(m *metadata.AuthorizationServer, a assertions) {
	if a.enterprise || a.workload {
		m.GrantTypes = append(m.GrantTypes, oauth.GrantJWTBearer)
	}
	if a.enterprise {
		m.GrantProfiles = metadata.Values{oauth.ProfileIDJAG}
	}
	if !a.made {
		return
	}
	m.Asserted, m.IdentityChaining = metadata.Values(s.keys.Algorithms()), metadata.Values{oauth.TokenTypeIDJAG}
	if !slices.Contains(m.GrantTypes, oauth.GrantTokenExchange) {
		m.GrantTypes = append(m.GrantTypes, oauth.GrantTokenExchange)
	}
}

// metadata returns the RFC 8414 document (AS-23).
func (s *Server) metadata(catalog *policy.Catalogue) metadata.AuthorizationServer {
	endpoint := func(path string) string { return s.cfg.Issuer + path }
	m := metadata.AuthorizationServer{
		Issuer:                s.cfg.Issuer, // unchanged from the configuration (RFC 8414 §3.3, AS-20)
		AuthorizationEndpoint: endpoint("/authorize"),
		TokenEndpoint:         endpoint("/token"),
		JWKSURI:               endpoint("/jwks.json"), // AS-32
		ScopesSupported:       metadata.Values(catalog.DefaultScopes().Union(oauth.Scopes{oauth.OfflineAccess})),
		ResponseTypes:         metadata.Values{"code"},
		ResponseModes:         metadata.Values{"query"},
		GrantTypes: metadata.Values{
			oauth.GrantCode, oauth.GrantRefresh, oauth.GrantClientCredentials, oauth.GrantDeviceCode,
		},
		TokenAuthMethods:            metadata.Values{"none", "client_secret_post", "client_secret_basic"}, // AS-172
		RevocationEndpoint:          endpoint("/revoke"),
		IntrospectionEndpoint:       endpoint("/introspect"),
		IntrospectionAuthMethods:    metadata.Values{"client_secret_basic", "client_secret_post"},
		ResourceReportsEndpoint:     endpoint("/reports"),
		ClearanceEndpoint:           endpoint("/clearance"),
		CodeChallengeMethods:        metadata.Values{oauth.S256},
		PushedRequestEndpoint:       endpoint("/par"),                                // RFC 9126 §5
		DeviceAuthorizationEndpoint: endpoint("/device_authorization"),               // RFC 8628 §4
		ACRs:                        metadata.Values(s.ways.ACRs()),                  // AS-238
		UILocales:                   metadata.Values(s.errors.web.pages.Languages()), // PE-13
		AuthorizationResponseIss:    true,                                            // RFC 9207 §2.3, AS-29
		ClientIDMetadataDocument:    s.cfg.Documents != nil,                          // AS-28
		DPoPAlgorithms:              dpop.Algorithms(),                               // AS-210
	}
	if s.cfg.ClientKeys != nil {
		m.TokenAuthMethods = append(m.TokenAuthMethods, oauth.PrivateKeyJWT)
		m.IntrospectionAuthMethods = append(m.IntrospectionAuthMethods, oauth.PrivateKeyJWT)
		m.TokenAuthAlgorithms = grant.AssertionAlgorithms()
		m.RevocationAuthAlgorithms, m.IntrospectionAuthAlgorithms = m.TokenAuthAlgorithms, m.TokenAuthAlgorithms
	}
	if s.cfg.Broker != nil || !s.cfg.HelpersOff {
		m.GrantTypes = append(m.GrantTypes, oauth.GrantTokenExchange)
	}
	if s.cfg.ConfidentialOnly {
		m.TokenAuthMethods = m.TokenAuthMethods[1:]
	}
	m.RevocationAuthMethods = m.TokenAuthMethods
	if s.cfg.Registration != nil { // AS-30
		m.RegistrationEndpoint = endpoint("/register")
	}
	m.ResourceScopes = map[string]metadata.Values{}
	for _, r := range catalog.Resources() {
		m.ProtectedResources = append(m.ProtectedResources, r.URI)
		m.ResourceScopes[r.URI] = metadata.Values(policy.ResourceScopes(r))
	}
	return m
}

// handleJWKS serves the public signing keys (RFC 7517 §5). A resource server that meets an unknown
// key fetches them again, so a short cache lifetime is enough.
func (s *Server) handleJWKS(w http.ResponseWriter, r *http.Request) {
	body, etag, err := s.keys.JWKS(r.Context())
	if err != nil {
		s.writeError(w, r, refusal.Unavailable(err))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "public, max-age=300")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("ETag", etag)
	if metadata.MatchesETag(r.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(http.StatusOK)
	w.Write(body)
}
