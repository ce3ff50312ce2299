package trust

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/jwks"
	"github.com/mcp-authd/mcp-authd/internal/safehttp"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	keysFresh = 10 * time.Minute // maximum age before keys are read again
	fileFresh = 30 * time.Second // the same for a file
	keysStale = 24 * time.Hour   // how long old keys are used while reading fails
	// keysPause is the minimum time between two reads, also for unknown keys. Forged assertions
	// must not cause requests to the issuer (AS-205).
	keysPause   = 10 * time.Second
	keysTimeout = 5 * time.Second // for a whole read, including the issuer's metadata
)

// source is the location of an issuer's keys. Equal sources share their keys.
type source struct {
	issuer   string
	url      string // "": from the issuer's metadata
	file     string
	inline   string
	networks string // separated by spaces
	ca       string // file with the CA certificates for the server at url; "": the system's
	token    string // file with a bearer token for that server; "": none
}

// fresh returns how long keys are used before they are read again.
func (s source) fresh() time.Duration {
	switch {
	case s.inline != "":
		return keysStale // it never changes
	case s.file != "":
		return fileFresh
	}
	return keysFresh
}

// keySet holds the keys of one source. They are read on first use.
type keySet struct {
	from source
	set  *jwks.Set[jose.JSONWebKey]
}

// newKeySet returns the key set of a source, without reading it.
func newKeySet(from source, now func() time.Time) *keySet {
	k := &keySet{from: from}
	k.set = &jwks.Set[jose.JSONWebKey]{
		Fetch: k.read,
		Now:   now,
		Pause: keysPause,
		Retry: keysPause,
		Stale: keysStale - from.fresh(),
	}
	return k
}

// fetch gets a document: https from public addresses and the entry's networks, and http from this
// machine.
func (k *keySet) fetch(ctx context.Context, location string) ([]byte, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, errors.New("the location of the keys is not a URL")
	}
	o := safehttp.Options{Timeout: keysTimeout, MaxBytes: maxKeySet}
	if oauth.IsLoopbackHost(u.Hostname()) {
		o.InsecureLoopback = true
	}
	for n := range strings.FieldsSeq(k.from.networks) {
		if prefix, err := netip.ParsePrefix(n); err == nil { // checked when the entry was compiled
			o.Networks = append(o.Networks, prefix)
		}
	}
	if k.from.ca != "" {
		pem, err := readFile(k.from.ca)
		if err != nil {
			return nil, err
		}
		if o.RootCAs = x509.NewCertPool(); !o.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("ca_file has no certificate")
		}
	}
	if k.from.token != "" {
		token, err := readFile(k.from.token)
		if err != nil {
			return nil, err
		}
		o.Bearer = strings.TrimSpace(string(token))
	}
	answer, err := safehttp.New(o).Get(ctx, location, safehttp.Validators{})
	return answer.Body, err
}

// of returns the keys that may have signed t. An unknown key ID causes another read, at most once
// every keysPause. While reading fails, keys that were read within keysStale are used.
func (k *keySet) of(ctx context.Context, t *token) ([]jose.JSONWebKey, error) {
	keys, err := k.set.Find(ctx, t.mayBeBy)
	if len(keys) == 0 {
		return nil, errors.Join(errors.New("the keys of the issuer cannot be had"), err)
	}
	return keys, nil
}

// mayBeBy reports whether the keys include one with the token's key ID.
func (t *token) mayBeBy(keys []jose.JSONWebKey) bool {
	for _, k := range keys {
		if t.kid == "" || k.KeyID == t.kid {
			return true
		}
	}
	return false
}

// read returns the keys of the source, and how long they are fresh.
func (k *keySet) read(ctx context.Context) ([]jose.JSONWebKey, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, keysTimeout)
	defer cancel()
	raw, err := k.load(ctx)
	if err != nil {
		return nil, 0, err
	}
	keys, err := parseKeySet(raw)
	return keys, k.from.fresh(), err
}

func (k *keySet) load(ctx context.Context) ([]byte, error) {
	switch {
	case k.from.inline != "":
		return []byte(k.from.inline), nil
	case k.from.file != "":
		return readFile(k.from.file)
	case k.from.url != "":
		return k.fetch(ctx, k.from.url)
	}
	location, err := k.discover(ctx)
	if err != nil {
		return nil, fmt.Errorf("metadata of the issuer: %w", err)
	}
	return k.fetch(ctx, location)
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxKeySet {
		return nil, fmt.Errorf("%s is no file, or larger than %d KiB", name, maxKeySet>>10)
	}
	return os.ReadFile(name)
}

// discover returns the key location from the issuer's metadata: OpenID Connect Discovery 1.0 §4, or
// RFC 8414 §3.1.
func (k *keySet) discover(ctx context.Context) (string, error) {
	u, err := url.Parse(k.from.issuer)
	if err != nil {
		return "", errors.New("the issuer is not a URL")
	}
	body, err := k.fetch(ctx, strings.TrimSuffix(k.from.issuer, "/")+"/.well-known/openid-configuration")
	if errors.Is(err, safehttp.ErrStatus) {
		at := *u
		at.Path, at.RawPath = "/.well-known/oauth-authorization-server"+strings.TrimSuffix(u.Path, "/"), ""
		body, err = k.fetch(ctx, at.String())
	}
	if err != nil {
		return "", err
	}
	return keysIn(body, k.from.issuer)
}

// keysIn returns the key location in the metadata of an issuer.
func keysIn(metadata []byte, issuer string) (string, error) {
	var m struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	switch err := json.Unmarshal(metadata, &m); {
	case err != nil:
		return "", errors.New("not a JSON document")
	case m.Issuer != issuer: // OpenID Connect Discovery 1.0 §4.3, RFC 8414 §3.3
		return "", errors.New("it names another issuer")
	}
	if err := secureURL(m.Keys); err != nil {
		return "", fmt.Errorf("jwks_uri %w", err)
	}
	if onThisMachine(m.Keys) && !onThisMachine(issuer) {
		return "", errInside
	}
	return m.Keys, nil
}

func onThisMachine(location string) bool {
	u, err := url.Parse(location)
	return err == nil && oauth.IsLoopbackHost(u.Hostname())
}

// errInside is returned if a remote issuer's metadata point to a server on this machine.
var errInside = errors.New("jwks_uri is on this machine, and the issuer is not")

// errNotHTTPS is returned for a URL whose content others could change in transit.
var errNotHTTPS = errors.New("is not https")

// secureURL accepts an https URL without a fragment, and http on loopback (AS-205).
func secureURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return errors.New("is missing")
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || len(s) > MaxText:
		return errors.New("is not the URL of a server")
	case u.Scheme != "https" && (u.Scheme != "http" || !oauth.IsLoopbackHost(u.Hostname())):
		return errNotHTTPS
	}
	return nil
}
