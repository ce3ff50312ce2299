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
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/jwks"
	"github.com/mcp-authd/mcp-authd/internal/safehttp"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Documents configures Client ID Metadata Documents: clients whose ID is the https URL of a
// document that describes them (MCP 2025-11-25, "Client ID Metadata Documents").
type Documents struct {
	// Enabled accepts such client IDs.
	Enabled bool
	// Trust decides by the URL of a document.
	Trust TrustPolicy
	// Proxy is the outbound proxy for documents and key sets, or nil for a direct connection.
	Proxy *url.URL
	// InsecureLoopback also accepts documents from this machine, including over http. It is for
	// development and tests.
	InsecureLoopback bool
	// Redirects maps a client ID to redirect URIs that the administrator allows in addition to the
	// document's. It is for a client that sends another URI than it publishes. New refuses any URI
	// that CheckDocumentRedirect refuses.
	Redirects map[string][]string
}

// check returns an error if c is invalid.
func (c Documents) check() error {
	if err := c.Trust.Check(); err != nil {
		return fmt.Errorf("dcr: Config.Documents.Trust: %w", err)
	}
	for id, uris := range c.Redirects {
		for _, uri := range uris {
			if err := CheckDocumentRedirect(id, uri); err != nil {
				return fmt.Errorf("dcr: Config.Documents.Redirects of %q: %w", id, err)
			}
		}
	}
	return nil
}

// CheckDocumentRedirect returns an error unless an administrator may allow uri in addition to the
// redirect URIs of the document at id. The URI must be http on loopback, or https on the document's
// host, so that only parties who could have published it benefit.
func CheckDocumentRedirect(id, uri string) error {
	document, err := url.Parse(id)
	if err != nil || document.Hostname() == "" ||
		document.Scheme != "https" && !oauth.IsLoopbackHost(document.Hostname()) {
		return fmt.Errorf("%q is not the https URL of a client metadata document", id)
	}
	if err := (oauth.RedirectPolicy{}).Check(uri); err != nil {
		return fmt.Errorf("%q: %w", uri, err)
	}
	u, err := url.Parse(uri)
	if err == nil &&
		(oauth.IsLoopbackRedirect(uri) || u.Scheme == "https" && strings.EqualFold(u.Host, document.Host)) {
		return nil
	}
	return fmt.Errorf("%q is neither http on loopback nor https on %s, the host of the document", uri, document.Host)
}

const (
	documentMinTTL   = 5 * time.Minute // minimum, even if the document asks for less
	documentNoStore  = time.Minute     // for no-store and no-cache: long enough for one sign-in
	documentMaxTTL   = 24 * time.Hour
	documentRetry    = 10 * time.Second // minimum time between two fetches of a document
	maxDocuments     = 2000
	documentsAllowed = 5 // fetches per second over all clients; the burst is ten times as many
)

// badDocument returns the error for an unusable client ID or document. Every caller gets the same
// error every time. It wraps storage.ErrNotFound, so the store treats the client as unknown
// (AS-165). The reason is for the publisher of the document and reveals nothing about the network
// of the server.
func badDocument(reason string, cause error) error {
	return oauth.NewError(oauth.InvalidClient,
		"The client metadata document cannot be used: "+reason+".").
		Because(attempt.CauseDocument.Because(errors.Join(storage.ErrNotFound, cause)))
}

// documents fetches, checks and caches client metadata documents.
type documents struct {
	cfg       Documents
	redirects oauth.RedirectPolicy
	fetch     *safehttp.Client
	now       func() time.Time
	wasRead   func(context.Context, storage.Client) // is called with each valid document that was fetched; may be nil
	looked    func(hit bool)                        // is called with whether the document was cached
	flight    singleflight.Group
	// Strangers and signed-in users have separate fetch allowances, and good and bad documents have
	// separate caches. Strangers therefore cannot use up what users need.
	strangers, people *rate.Limiter
	good, bad         *bounded.Map[string, document]
	failed            *bounded.Map[string, failure] // fetches that failed since the last successful one
}

type document struct {
	client     storage.Client
	text       text
	err        error // why the document is invalid
	validators safehttp.Validators
	fetched    time.Time
	expires    time.Time
}

func newDocuments(
	c Documents, redirects oauth.RedirectPolicy, fetch *safehttp.Client, now func() time.Time,
) *documents {
	return &documents{
		cfg: c, redirects: redirects, fetch: fetch, now: now, looked: func(bool) {},
		good: bounded.New[string, document](maxDocuments, now), bad: bounded.New[string, document](maxDocuments, now),
		failed:    bounded.New[string, failure](maxDocuments, now),
		strangers: rate.NewLimiter(documentsAllowed, 10*documentsAllowed),
		people:    rate.NewLimiter(documentsAllowed, 10*documentsAllowed),
	}
}

// handles reports whether id has the form of a document URL.
func (d *documents) handles(id string) bool {
	return d.cfg.Enabled &&
		(strings.HasPrefix(id, "https://") || d.cfg.InsecureLoopback && strings.HasPrefix(id, "http://"))
}

// known returns the cached document for id and whether it is still fresh.
func (d *documents) known(id string) (document, bool) {
	e, ok := d.kept(id)
	return e, ok && d.now().Before(e.expires)
}

// client returns the client that a document describes. The document is no older than its headers
// allow, and no older than documentRetry if fresh is set, which is for signed-in users. The error
// comes from badDocument, or is unfetched if the document is unavailable.
func (d *documents) client(ctx context.Context, id string, fresh bool) (storage.Client, error) {
	e, ok := d.known(id)
	ok = ok && !(fresh && d.now().Sub(e.fetched) >= documentRetry)
	if d.looked(ok); ok {
		return e.client, e.err
	}
	if err := d.checkID(id); err != nil { // before anything is fetched
		return storage.Client{}, err
	}
	v, err, _ := d.flight.Do(id, func() (any, error) { return d.load(context.WithoutCancel(ctx), id, fresh) })
	if err != nil {
		return storage.Client{}, err
	}
	return v.(storage.Client), nil
}

// kept returns the latest cached document, however old.
func (d *documents) kept(id string) (document, bool) {
	if e, ok := d.bad.Get(id); ok {
		return e, true
	}
	return d.good.Get(id)
}

func (d *documents) keep(id string, e document) {
	if e.err != nil {
		d.good.Drop(id)
		d.bad.Put(id, e, time.Time{})
		return
	}
	d.bad.Drop(id)
	d.good.Put(id, e, time.Time{})
}

// load fetches and checks a document. A valid document is cached for as long as its headers allow,
// within bounds. An invalid one is cached for documentRetry, so that it is not fetched in a loop.
func (d *documents) load(ctx context.Context, id string, signedIn bool) (storage.Client, error) {
	now := d.now()
	old, ok := d.kept(id)
	if ok && now.Sub(old.fetched) < documentRetry { // another request has just finished
		return old.client, old.err
	}
	allowance := d.strangers
	if signedIn {
		allowance = d.people
	}
	if !allowance.AllowN(now, 1) {
		return storage.Client{}, errors.New("too many client metadata documents at once")
	}
	answer, err := d.fetch.Get(ctx, id, old.validators)
	e := document{fetched: now, validators: answer.Validators(), expires: now.Add(lifetime(answer.Header))}
	switch {
	case errors.Is(err, safehttp.ErrNotModified):
		e.client, e.validators, e.text = old.client, old.validators, old.text
	case err != nil:
		if e.err = fetchError(err); e.err == nil {
			d.failed.Put(id, failure{now, cleanText(err.Error(), maxTextLength)}, time.Time{})
			return storage.Client{}, unfetched{err}
		}
	default:
		e.text = textOf(answer.Body)
		if e.client, e.err = d.read(id, answer); e.err == nil && d.wasRead != nil {
			d.wasRead(ctx, e.client)
		}
	}
	if e.err != nil {
		e = document{err: e.err, text: e.text, fetched: now, expires: now.Add(documentRetry)}
	}
	d.failed.Drop(id)
	d.keep(id, e)
	return e.client, e.err
}

// unfetched reports that a document is currently unavailable. A name that resolves to an internal
// address gets the same answer as an unknown name or a server that is down. Otherwise strangers
// could learn internal names (SP-12). The cause is for the log.
type unfetched struct{ cause error }

// Error implements error.
func (u unfetched) Error() string {
	return "the client metadata document cannot be fetched: " + u.cause.Error()
}

// Unwrap returns the cause.
func (u unfetched) Unwrap() error { return u.cause }

// Unfetched marks this error for authserver.
func (unfetched) Unfetched() {}

// fetchError returns the refusal if a failed fetch is the document's fault, and nil if a later
// fetch may succeed.
func fetchError(err error) error {
	var status safehttp.StatusError
	switch {
	case errors.Is(err, safehttp.ErrTooLarge):
		return badDocument("it is too large", err)
	case errors.As(err, &status) && !status.Temporary():
		return badDocument("its server answers "+strconv.Itoa(int(status))+
			" where 200 is needed, and redirects are not followed", err)
	}
	return nil
}

// lifetime returns how long a response may be cached: Cache-Control (RFC 9111 §5.2) minus Age,
// within the bounds above.
func lifetime(h http.Header) time.Duration {
	for directive := range strings.SplitSeq(h.Get("Cache-Control"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch strings.ToLower(name) {
		case "no-store", "no-cache":
			return documentNoStore
		case "max-age":
			age, _ := strconv.Atoi(h.Get("Age"))
			seconds, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 64)
			// a value that overflows counts as very large (RFC 9111 §1.2.2)
			if (err == nil || errors.Is(err, strconv.ErrRange)) && seconds > 0 {
				left := min(seconds, 1<<30) - int64(max(min(age, 1<<30), 0))
				return min(max(time.Duration(left)*time.Second, documentMinTTL), documentMaxTTL)
			}
		}
	}
	return documentMinTTL
}

// checkID checks the URL itself (CIMD §3, AS-152): https with a path, and no fragment, user
// information or dot segments. It also applies the administrator's trust policy.
func (d *documents) checkID(id string) error {
	u, err := url.Parse(id)
	switch {
	case err != nil || u.Hostname() == "" || strings.ContainsRune(id, '#') || u.User != nil:
		return badDocument("the client id is not an https URL without fragment and user", err)
	case u.Scheme != "https" && !(d.cfg.InsecureLoopback && u.Scheme == "http" && oauth.IsLoopbackHost(u.Hostname())):
		return badDocument("the client id is not an https URL", nil)
	case !oauth.PlainHost(u.Hostname()):
		return badDocument("the client id has a host that is not written in plain ASCII", nil)
	case u.Path == "" || u.Path == "/":
		return badDocument("the client id URL has no path", nil)
	}
	if err := d.fetch.Check(u); err != nil { // AS-161
		return badDocument("the client id has the host "+u.Hostname()+", which is never read from", err)
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." {
			return badDocument("the client id URL has dot segments", nil)
		}
	}
	if d.cfg.Trust.Of(id) == TrustDeny {
		return badDocument("clients of "+u.Host+" are not accepted by this server", nil)
	}
	return nil
}

// read checks a document (CIMD §4.1, AS-155, AS-156) and returns its client.
func (d *documents) read(id string, answer safehttp.Answer) (storage.Client, error) {
	c, err := d.parse(id, answer)
	if err != nil {
		reason := err.Error()
		var e *oauth.Error
		if errors.As(err, &e) { // from the rules shared with registration
			reason = strings.TrimSuffix(e.Description, ".")
		}
		return storage.Client{}, badDocument(reason, err)
	}
	return c, nil
}

func (d *documents) parse(id string, answer safehttp.Answer) (storage.Client, error) {
	media, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil ||
		media != "application/json" &&
			!(strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")) {
		return storage.Client{}, errors.New("it is not served as JSON")
	}
	members, err := parseObject(answer.Body)
	if err != nil {
		return storage.Client{}, err
	}
	r := reader{members: members}
	if r.text("client_id", maxURILength) != id { // simple string comparison
		return storage.Client{}, errors.New("the client_id in it is not its URL")
	}
	for _, secret := range []string{"client_secret", "client_secret_expires_at"} {
		if members.Get(secret) != nil {
			return storage.Client{}, errors.New("it has a client secret")
		}
	}
	methods := r.list("token_endpoint_auth_methods_supported", maxListItems, maxTextLength)
	m, err := parseRequest(answer.Body)
	switch {
	case err != nil:
		return storage.Client{}, err
	case r.err != nil:
		return storage.Client{}, r.err
	case m.Name == "":
		return storage.Client{}, errors.New("it has no client_name")
	}
	return d.admit(id, m, methods)
}

// admit builds a client from a document. As in a registration, unsupported values are dropped.
func (d *documents) admit(id string, m clientMetadata, methods []string) (storage.Client, error) {
	c := storage.Client{
		ID: id, Name: cleanText(m.Name, maxNameLength), RedirectURIs: slices.Clone(m.RedirectURIs),
		GrantTypes: slices.Clone(defaultGrants),
		AuthMethod: "none", Source: storage.SourceCIMD, Metadata: m.display().encode(),
		CreatedAt: d.now().UTC().Truncate(time.Second),
	}
	if jwks.Empty(m.JWKS) {
		m.JWKS = nil
	}
	// A client that lists both methods may use either. It is public, and a signature is verified if
	// it sends one.
	public := m.AuthMethod == "" || m.AuthMethod == "none" || slices.Contains(methods, "none")
	switch keyless := m.JWKS == nil && m.JWKSURI == ""; {
	case m.AuthMethod == privateKeyJWT && !(public && keyless):
		if err := admitKeys(&c, m, d.fetch); err != nil {
			return c, err
		}
		if !public {
			c.AuthMethod = privateKeyJWT // CIMD §6.2, AS-159
		}
	case !public: // CIMD §4.1, AS-158
		return c, errors.New("its token_endpoint_auth_method is neither none nor private_key_jwt")
	}
	if err := admitRedirects(d.redirects, m.RedirectURIs); err != nil {
		return c, err
	}
	for _, uri := range d.cfg.Redirects[id] {
		if !slices.Contains(c.RedirectURIs, uri) {
			c.RedirectURIs = append(c.RedirectURIs, uri)
		}
	}
	if len(m.GrantTypes) > 0 {
		c.GrantTypes = grantsOf(grantBits(m.GrantTypes, selfServiceGrants), selfServiceGrants)
	}
	if !slices.Contains(c.GrantTypes, grantCode) {
		return c, errors.New("its grant_types lack authorization_code")
	}
	return c, nil
}
