package dcr

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/mcp-authd/mcp-authd/internal/safehttp"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Documents configures Client ID Metadata Documents: clients whose id is the https
// URL of a document about them (MCP 2025-11-25, "Client ID Metadata Documents").
type Documents struct {
	// Enabled accepts such ids.
	Enabled bool
	// InsecureLoopback also accepts documents from this machine, over http as well, for
	// development and tests.
	InsecureLoopback bool
}

const (
	documentMinTTL   = 5 * time.Minute // however short the document says it may be kept
	documentMaxTTL   = 24 * time.Hour
	documentRetry    = 10 * time.Second // a document that is no good is not asked for again sooner
	maxDocuments     = 1000
	documentsAllowed = 5 // fetches a second, over all clients, with a burst of ten times that
)

// errDocument means that an id or its document is no good, whoever asks and however
// often. It is a kind of not found: no such client can be used here.
var errDocument = fmt.Errorf("client id metadata document: %w", storage.ErrNotFound)

// documents fetches, checks and keeps client metadata documents.
type documents struct {
	cfg       Documents
	redirects oauth.RedirectPolicy
	fetch     *safehttp.Client
	now       func() time.Time
	flight    singleflight.Group
	rate      *rate.Limiter

	mu      sync.Mutex // guards entries
	entries map[string]document
}

type document struct {
	client  storage.Client
	err     error
	expires time.Time
}

func newDocuments(c Documents, redirects oauth.RedirectPolicy, now func() time.Time) *documents {
	return &documents{
		cfg: c, redirects: redirects, now: now, entries: map[string]document{},
		fetch: safehttp.New(safehttp.Options{InsecureLoopback: c.InsecureLoopback}),
		rate:  rate.NewLimiter(documentsAllowed, 10*documentsAllowed),
	}
}

// handles reports whether an id is meant to be the URL of a document.
func (d *documents) handles(id string) bool {
	return d.cfg.Enabled && (strings.HasPrefix(id, "https://") || d.cfg.InsecureLoopback && strings.HasPrefix(id, "http://"))
}

// client returns the client that a document describes: errDocument when the document
// is no good, another error when it cannot be had now.
func (d *documents) client(ctx context.Context, id string) (storage.Client, error) {
	if e, ok := d.kept(id); ok {
		return e.client, e.err
	}
	if err := d.checkID(id); err != nil { // before anything is fetched
		return storage.Client{}, fmt.Errorf("%w: %w", errDocument, err)
	}
	v, err, _ := d.flight.Do(id, func() (any, error) { return d.load(context.WithoutCancel(ctx), id) })
	if err != nil {
		return storage.Client{}, err
	}
	return v.(storage.Client), nil
}

func (d *documents) kept(id string) (document, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e, ok := d.entries[id]
	return e, ok && d.now().Before(e.expires)
}

func (d *documents) keep(id string, e document) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.entries) >= maxDocuments {
		clear(d.entries) // each is one fetch to have again
	}
	d.entries[id] = e
}

// load fetches and checks a document. What is good is kept for as long as its headers
// say, within bounds; what is not, for a moment, so that it is not fetched in a loop.
func (d *documents) load(ctx context.Context, id string) (storage.Client, error) {
	if e, ok := d.kept(id); ok { // somebody else has just finished
		return e.client, e.err
	}
	if !d.rate.Allow() {
		return storage.Client{}, errors.New("too many client metadata documents at once")
	}
	header, body, err := d.fetch.Get(ctx, id)
	if err != nil && !safehttp.Refused(err) && !errors.Is(err, safehttp.ErrStatus) && !errors.Is(err, safehttp.ErrTooLarge) {
		return storage.Client{}, fmt.Errorf("client metadata document cannot be fetched: %w", err)
	}
	var c storage.Client
	if err == nil {
		c, err = d.read(id, header, body)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", errDocument, err)
		d.keep(id, document{err: err, expires: d.now().Add(documentRetry)})
		return storage.Client{}, err
	}
	d.keep(id, document{client: c, expires: d.now().Add(lifetime(header))})
	return c, nil
}

// lifetime is how long a document may be kept, by Cache-Control (RFC 9111 §5.2).
func lifetime(h http.Header) time.Duration {
	for directive := range strings.SplitSeq(h.Get("Cache-Control"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		if !strings.EqualFold(name, "max-age") {
			continue
		}
		if seconds, err := strconv.Atoi(strings.Trim(value, `"`)); err == nil && seconds > 0 {
			return min(max(time.Duration(min(seconds, 1<<30))*time.Second, documentMinTTL), documentMaxTTL)
		}
	}
	return documentMinTTL
}

// checkID holds the rules for the URL itself (CIMD §3): https with a path, no
// fragment, no user information, no dot segments.
func (d *documents) checkID(id string) error {
	u, err := url.Parse(id)
	switch {
	case err != nil || u.Hostname() == "" || strings.ContainsRune(id, '#') || u.User != nil:
		return errors.New("the client id is not an https URL without fragment and user")
	case u.Scheme != "https" && !(d.cfg.InsecureLoopback && u.Scheme == "http" && oauth.IsLoopbackHost(u.Hostname())):
		return errors.New("the client id is not an https URL")
	case u.Path == "" || u.Path == "/":
		return errors.New("the client id URL has no path")
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." {
			return errors.New("the client id URL has dot segments")
		}
	}
	return nil
}

// read checks a document (CIMD §4.1) and returns its client.
func (d *documents) read(id string, header http.Header, body []byte) (storage.Client, error) {
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil || media != "application/json" && !(strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")) {
		return storage.Client{}, errors.New("the document is not JSON")
	}
	members, err := parseObject(body)
	if err != nil {
		return storage.Client{}, err
	}
	r := reader{members: members}
	if r.text("client_id", maxURILength) != id { // simple string comparison
		return storage.Client{}, errors.New("client_id in the document is not its URL")
	}
	for _, secret := range []string{"client_secret", "client_secret_expires_at"} {
		if _, ok := members[secret]; ok {
			return storage.Client{}, errors.New("the document has a client secret")
		}
	}
	methods := r.list("token_endpoint_auth_methods_supported", maxListItems, maxTextLength)
	m, err := parseRequest(body)
	switch {
	case err != nil:
		return storage.Client{}, err
	case r.err != nil:
		return storage.Client{}, r.err
	case m.Name == "":
		return storage.Client{}, errors.New("the document has no client_name")
	case m.AuthMethod != "" && m.AuthMethod != "none" && !slices.Contains(methods, "none"):
		return storage.Client{}, errors.New("the document asks for a way of client authentication that is not offered: " + m.AuthMethod)
	}
	if err := admitRedirects(d.redirects, m.RedirectURIs); err != nil {
		return storage.Client{}, err
	}
	grants := selfServiceGrants
	if len(m.GrantTypes) > 0 {
		grants = grantsOf(grantBits(m.GrantTypes))
	}
	if !slices.Contains(grants, grantCode) {
		return storage.Client{}, errors.New("grant_types of the document lacks authorization_code")
	}
	return storage.Client{
		ID: id, Name: cleanText(m.Name, maxNameLength), RedirectURIs: m.RedirectURIs, GrantTypes: slices.Clone(grants),
		AuthMethod: "none", Source: storage.SourceCIMD, Metadata: m.display().encode(), CreatedAt: d.now().UTC().Truncate(time.Second),
	}, nil
}
