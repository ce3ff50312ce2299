package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"
)

const (
	metadataFresh = time.Hour
	metadataStale = 24 * time.Hour // while the provider is unreachable
)

// endpoints lists the endpoints and features of a provider. An empty field means not supported.
type endpoints struct {
	issuer, authorize, token, userInfo, revoke, introspect string

	authMethods []string
	scopes      []string // scopes_supported
	algorithms  []string
	namesIssuer bool     // authorization_response_iss_parameter_supported
	challenges  []string // code_challenge_methods_supported

	keys                  oidc.KeySet // for tokens in the provider's responses
	logoutKeys, eventKeys oidc.KeySet // for tokens that anyone can send
}

// discovery reads a provider's metadata on demand, once for concurrent callers, and caches them for
// an hour. While the provider is unreachable, it uses older metadata.
type discovery struct {
	at      string                   // the configured issuer identifier
	issuer  func(found string) error // nil: must equal at
	client  *http.Client
	now     func() time.Time
	flights singleflight.Group
	reads   reads // of the metadata and the keys

	mu    sync.Mutex // guards the fields below
	found *endpoints
	read  time.Time
}

func (d *discovery) get(ctx context.Context) (*endpoints, error) {
	if found, age := d.cached(); found != nil && age < metadataFresh {
		return found, nil
	}
	// The request outlives a caller that gives up. The client's timeout bounds it.
	flight := d.flights.DoChan("", func() (any, error) { return d.renew(context.WithoutCancel(ctx)) })
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, ctx.Err())
	case r := <-flight:
		if r.Err == nil {
			return r.Val.(*endpoints), nil
		}
		if found, age := d.cached(); found != nil && age < metadataStale && errors.Is(r.Err, ErrUnreachable) {
			return found, nil
		}
		return nil, r.Err
	}
}

// cached returns the cached metadata, if any, and their age.
func (d *discovery) cached() (*endpoints, time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.found, d.now().Sub(d.read)
}

func (d *discovery) renew(ctx context.Context) (*endpoints, error) {
	e, err := d.fetch(ctx)
	if err = d.reads.note(readMetadata, d.now(), err); err != nil {
		return nil, fmt.Errorf("metadata of %s: %w", d.at, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found, d.read = e, d.now()
	return e, nil
}

func (d *discovery) fetch(ctx context.Context) (*endpoints, error) {
	ctx = oidc.ClientContext(ctx, d.client)
	if d.issuer != nil { // checked below
		ctx = oidc.InsecureIssuerURLContext(ctx, d.at)
	}
	p, err := oidc.NewProvider(ctx, d.at)
	if err != nil {
		return nil, unusable(err)
	}
	var m struct {
		Issuer      string   `json:"issuer"`
		UserInfo    string   `json:"userinfo_endpoint"`
		Keys        string   `json:"jwks_uri"`
		Revoke      string   `json:"revocation_endpoint"`
		Introspect  string   `json:"introspection_endpoint"`
		Scopes      []string `json:"scopes_supported"`
		Algorithms  []string `json:"id_token_signing_alg_values_supported"`
		AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
		NamesIssuer bool     `json:"authorization_response_iss_parameter_supported"`
		Challenges  []string `json:"code_challenge_methods_supported"`
	}
	if err := p.Claims(&m); err != nil {
		return nil, unusable(err)
	}
	if d.issuer != nil {
		if err := d.issuer(m.Issuer); err != nil {
			return nil, err
		}
	}
	e := &endpoints{
		issuer: m.Issuer, authorize: p.Endpoint().AuthURL, token: p.Endpoint().TokenURL, userInfo: m.UserInfo,
		revoke: m.Revoke, introspect: m.Introspect,
		authMethods: m.AuthMethods, scopes: m.Scopes, algorithms: signing(m.Algorithms), namesIssuer: m.NamesIssuer,
		challenges: m.Challenges,
	}
	for name, at := range map[string]string{
		"authorization_endpoint": e.authorize, "token_endpoint": e.token, "jwks_uri": m.Keys,
	} {
		if err := webURL(at); err != nil {
			return nil, fmt.Errorf("%w: %s %w", ErrGarbage, name, err)
		}
	}
	keys := newKeySet(m.Keys, d.client, d.now, &d.reads)
	e.keys, e.logoutKeys, e.eventKeys = keysFor{keys, forAnswers}, keysFor{keys, forLogouts}, keysFor{keys, forEvents}
	return e, nil
}

// asymmetric lists the signature algorithms that a provider may use.
var asymmetric = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512,
	jose.EdDSA,
}

// signing returns the asymmetric algorithms among the offered ones, or RS256 if all of them are
// symmetric. Every provider must support RS256.
func signing(offered []string) (out []string) {
	for _, a := range offered {
		if slices.Contains(asymmetric, jose.SignatureAlgorithm(a)) {
			out = append(out, a)
		}
	}
	if out == nil {
		out = []string{oidc.RS256}
	}
	return out
}

// unusable returns the error for a response that a library rejected, or ErrUnreachable if there was
// no response.
func unusable(err error) error {
	for _, known := range []error{ErrUnreachable, ErrGarbage} {
		if errors.Is(err, known) {
			return err
		}
	}
	if u := (*url.Error)(nil); errors.As(err, &u) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return fmt.Errorf("%w: %s", ErrGarbage, printable(err.Error(), 200)) // may quote the response
}

// webURL accepts an https URL without a fragment, and http on loopback.
func webURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return errors.New("is missing")
	case err != nil || u.Host == "" || u.User != nil || strings.Contains(s, "#"):
		return errors.New("is not the URL of a server")
	case u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())):
		return errors.New("is not https")
	}
	return nil
}
