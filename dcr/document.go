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

	"github.com/mcp-authd/mcp-authd/attempt"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/safehttp"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Documents configures Client ID Metadata Documents: clients whose id is the https
// URL of a document about them (MCP 2025-11-25, "Client ID Metadata Documents").
type Documents struct {
	// Enabled accepts such ids.
	Enabled bool
	// Trust decides by where a document is.
	Trust TrustPolicy
	// Proxy is the outbound proxy for documents and key sets; nil: none.
	Proxy *url.URL
	// InsecureLoopback also accepts documents from this machine, over http as well, for
	// development and tests.
	InsecureLoopback bool
	// Redirects are redirect URIs that the operator allows a client in addition to those of its
	// document, by its id: for a client that sends another one than it publishes. New
	// refuses those that CheckDocumentRedirect does.
	Redirects map[string][]string
}

// check reports what in c cannot be meant.
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

// CheckDocumentRedirect reports why an operator cannot allow the client of a document a
// further redirect URI, or nil. It stays with those who could have published it: on the
// person's own machine, or on the host of the document.
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
	documentMinTTL   = 5 * time.Minute // however short the document says it may be kept
	documentNoStore  = time.Minute     // if it says not to keep it: long enough for one sign-in
	documentMaxTTL   = 24 * time.Hour
	documentRetry    = 10 * time.Second // no document is asked for again sooner
	maxDocuments     = 2000
	documentsAllowed = 5 // fetches a second, over all clients, with a burst of ten times that
)

// badDocument is the refusal of an id or its document that is no good, whichever caller asks and
// however often: to the store's eyes no such client (AS-165). The reason is for the people who
// publish the document; it says nothing about the network that we fetch from.
func badDocument(reason string, cause error) error {
	return oauth.NewError(oauth.InvalidClient,
		"The client metadata document cannot be used: "+reason+".").
		Because(attempt.CauseDocument.Because(errors.Join(storage.ErrNotFound, cause)))
}

// documents fetches, checks and keeps client metadata documents.
type documents struct {
	cfg       Documents
	redirects oauth.RedirectPolicy
	fetch     *safehttp.Client
	now       func() time.Time
	wasRead   func(context.Context, storage.Client) // is called with each valid document that was read; may be nil
	looked    func(hit bool)                        // is told whether a document was at hand
	flight    singleflight.Group
	// Strangers and people who have signed in have an allowance each, and good and bad
	// documents a place each, so that the former cannot use up what the latter need.
	strangers, people *rate.Limiter
	good, bad         *bounded.Map[string, document]
	failed            *bounded.Map[string, failure] // to be had, since they were read last
}

type document struct {
	client     storage.Client
	text       text
	err        error // why the document is no good
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

// handles reports whether an id is meant to be the URL of a document.
func (d *documents) handles(id string) bool {
	return d.cfg.Enabled &&
		(strings.HasPrefix(id, "https://") || d.cfg.InsecureLoopback && strings.HasPrefix(id, "http://"))
}

// known returns what is kept of a document and still fresh.
func (d *documents) known(id string) (document, bool) {
	e, ok := d.kept(id)
	return e, ok && d.now().Before(e.expires)
}

// client returns the client that a document describes, not older than its headers allow,
// or than documentRetry if fresh is asked for, which is for people who have signed in. The error is
// that of badDocument, or says
// that the document cannot be had now.
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

// kept returns the latest that is known of a document, however old.
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

// load fetches and checks a document. What is good is kept for as long as its headers
// say, within bounds; what is not, for a moment, so that it is not fetched in a loop.
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

// unfetched says that a document cannot be had now. A name that resolves to an address inside
// gets no other answer than one that does not exist, or a server that is down: else strangers
// would learn our names (SP-12). The cause is for the log.
type unfetched struct{ cause error }

// Error implements error.
func (u unfetched) Error() string {
	return "the client metadata document cannot be fetched: " + u.cause.Error()
}

// Unwrap returns the cause.
func (u unfetched) Unwrap() error { return u.cause }

// Unfetched is how authserver tells this error from others.
func (unfetched) Unfetched() {}

// fetchError is the refusal if a failed fetch is the fault of the document, nil when it
// may be another time.
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

// lifetime is how long an answer may be kept, by Cache-Control (RFC 9111 §5.2), less its
// Age, within our bounds.
func lifetime(h http.Header) time.Duration {
	for directive := range strings.SplitSeq(h.Get("Cache-Control"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch strings.ToLower(name) {
		case "no-store", "no-cache":
			return documentNoStore
		case "max-age":
			age, _ := strconv.Atoi(h.Get("Age"))
			seconds, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 64)
			// what is too large is large (RFC 9111 §1.2.2)
			if (err == nil || errors.Is(err, strconv.ErrRange)) && seconds > 0 {
				left := min(seconds, 1<<30) - int64(max(min(age, 1<<30), 0))
				return min(max(time.Duration(left)*time.Second, documentMinTTL), documentMaxTTL)
			}
		}
	}
	return documentMinTTL
}

// checkID holds the rules for the URL itself (CIMD §3, AS-152): https with a path, no
// fragment, no user information, no dot segments; and the operator's.
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
		if errors.As(err, &e) { // of the rules that it shares with registration
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
		if _, ok := members[secret]; ok {
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

// admit makes a client of what a document says. It registers what we offer of what is
// asked, as a registration does.
func (d *documents) admit(id string, m request, methods []string) (storage.Client, error) {
	c := storage.Client{
		ID: id, Name: cleanText(m.Name, maxNameLength), RedirectURIs: slices.Clone(m.RedirectURIs),
		GrantTypes: slices.Clone(defaultGrants),
		AuthMethod: "none", Source: storage.SourceCIMD, Metadata: m.display().encode(),
		CreatedAt: d.now().UTC().Truncate(time.Second),
	}
	if noKeys(m.JWKS) {
		m.JWKS = nil
	}
	// A client that says it can do either may come either way: public, and whatever it
	// signs is verified.
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
