package dcr

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/recent"
	"github.com/mcp-authd/mcp-authd/internal/safehttp"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// maxIDLength bounds every client id that is looked up, in bytes.
const maxIDLength = 512

// Config is what a Registry needs. Store and SecretKeys are required.
type Config struct {
	// Store holds the clients that have a row, and the tombstones.
	Store storage.Clients
	// SecretKeys are the master keys, the primary first. Ids sealed under any of
	// them open; new ones are sealed under the primary.
	SecretKeys [][]byte
	// Holds returns the applications that are paused or blocked: their clients are refused. Nil: none.
	Holds Holds
	// Redirects says which redirect URIs may be registered in addition to https and
	// loopback http. PrivateUseSchemes nil means oauth.DesktopSchemes; empty, none.
	Redirects oauth.RedirectPolicy
	// KnownScopes returns the scopes that can be granted at all; others are left out of what is
	// registered and echoed. Nil: every scope.
	KnownScopes func(context.Context) oauth.Scopes
	// DefaultScopes returns the scopes in the reply to a client that asked for no known one; they
	// do not restrict the client. Nil: none.
	DefaultScopes func(context.Context) oauth.Scopes
	// Limits bounds registrations of one client network.
	Limits Limits
	// Allowances counts what Limits allows for all replicas together. Nil: each replica counts alone.
	Allowances storage.Allowances
	// ClientAddr returns the address that a request comes from, behind trusted
	// proxies too. Nil: the peer.
	ClientAddr func(*http.Request) netip.Addr
	// Clients are those of the configuration. They are known for as long as they are listed there,
	// whatever the store has of them, unless deleted.
	Clients []storage.Client
	// Disabled refuses new registrations; registered clients stay.
	Disabled bool
	// MachineClients lets confidential clients register themselves for
	// client_credentials, which gives anyone who can reach the server a token without a
	// person (AS-178). Off unless the server is on a closed network.
	MachineClients bool
	// Endpoint is the URL of the registration endpoint, for the URLs at which clients
	// manage their registrations (RFC 7592 §3). Empty: not offered.
	Endpoint string
	// Documents accepts clients that are identified by a metadata document.
	Documents Documents

	Audit  *audit.Recorder  // nil: discarded
	Logger *slog.Logger     // nil: discarded
	Now    func() time.Time // nil: time.Now
	// DocumentAsked is told whether a client document was at hand when it was asked for; nil: nothing is.
	DocumentAsked func(hit bool)
}

const (
	// clientTTL is how long the requests of one sign-in share one read of the store, and a deletion
	// elsewhere may go unnoticed.
	clientTTL  = 5 * time.Second
	maxClients = 10_000
)

// Registry registers clients and resolves their ids. It is safe for concurrent use.
type Registry struct {
	cfg     Config
	sealer  *sealer
	static  map[string]storage.Client
	clients *bounded.Map[string, storage.Client] // that exist: an unknown id may be created at any moment
	limiter *limiter
	holds   *recent.Value[map[string]storage.Hold]
	docs    *documents
	// Clients that the operator vouches for have key sets of their own, and so have those that a
	// person has approved: strangers, who register themselves, cannot use up their allowance.
	vouched, approved, strange *keySets
}

// New returns a registry, or an error that says what in c is wrong.
func New(c Config) (*Registry, error) {
	if c.Store == nil {
		return nil, errors.New("dcr: Config.Store is nil")
	}
	sealer, err := newSealer(c.SecretKeys)
	if err != nil {
		return nil, fmt.Errorf("dcr: Config.SecretKeys: %w", err)
	}
	if c.Redirects.PrivateUseSchemes == nil {
		c.Redirects.PrivateUseSchemes = slices.Clone(oauth.DesktopSchemes)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if err := c.Documents.check(); err != nil {
		return nil, err
	}
	fetch := safehttp.New(safehttp.Options{InsecureLoopback: c.Documents.InsecureLoopback, Proxy: c.Documents.Proxy})
	static := map[string]storage.Client{}
	for _, client := range c.Clients {
		client.Source = storage.SourceConfig
		static[client.ID] = client
	}
	r := &Registry{
		cfg: c, sealer: sealer, static: static, clients: bounded.New[string, storage.Client](maxClients, c.Now),
		limiter: newLimiter(c.Limits, allowance.New(c.Allowances, c.Now, c.Logger)),
		holds:   newHolds(c.Holds, c.Now),
		docs:    newDocuments(c.Documents, c.Redirects, fetch, c.Now),
		vouched: newKeySets(fetch, c.Now), approved: newKeySets(fetch, c.Now), strange: newKeySets(fetch, c.Now),
	}
	r.docs.wasRead = r.keepCopy
	if c.DocumentAsked != nil {
		r.docs.looked = c.DocumentAsked
	}
	return r, nil
}

// Attach tells the registry of the authorization server that it belongs to: its issuer,
// which scopes it knows and grants by default, and where requests come from. Each counts
// only where Config is silent. authserver.New calls it, before anything is served; where
// a Config that is complete needs no call.
func (r *Registry) Attach(
	issuer string, known, standard func(context.Context) oauth.Scopes, clientAddr func(*http.Request) netip.Addr,
) {
	if r.cfg.Endpoint == "" && !r.cfg.Disabled {
		r.cfg.Endpoint = issuer + "/register"
	}
	if r.cfg.KnownScopes == nil {
		r.cfg.KnownScopes = known
	}
	if r.cfg.DefaultScopes == nil {
		r.cfg.DefaultScopes = standard
	}
	if r.cfg.ClientAddr == nil {
		r.cfg.ClientAddr = clientAddr
	}
}

// OffersRegistration reports whether clients may register.
func (r *Registry) OffersRegistration() bool { return !r.cfg.Disabled }

// OffersDocuments reports whether client ids may be URLs of metadata documents.
func (r *Registry) OffersDocuments() bool { return r.cfg.Documents.Enabled }

// Client resolves a client id: a stored row first, else the sealed id itself.
// storage.ErrNotFound when it is neither, storage.ErrRevoked when the client was
// deleted. An answer is kept for a few seconds; until then a deletion on another
// replica may not show here, but no verb of the store acts for a deleted client.
// The slices of the returned client are shared: do not change them.
//
// A client whose application the operator holds comes with an *oauth.Error that is ErrHeld.
func (r *Registry) Client(ctx context.Context, id string) (storage.Client, error) {
	return r.unlessHeld(ctx)(r.resolve(ctx, id))
}

// unlessHeld refuses a client that was found when its application is held.
func (r *Registry) unlessHeld(ctx context.Context) func(storage.Client, error) (storage.Client, error) {
	return func(c storage.Client, err error) (storage.Client, error) {
		if err == nil {
			err = r.checkHold(ctx, c)
		}
		return c, err
	}
}

func (r *Registry) resolve(ctx context.Context, id string) (storage.Client, error) {
	if r.docs.handles(id) && len(id) <= maxURILength {
		return r.documented(ctx, id)
	}
	if id == "" || len(id) > maxIDLength {
		return storage.Client{}, fmt.Errorf("client id of %d bytes: %w", len(id), storage.ErrNotFound)
	}
	if c, ok := r.clients.Get(id); ok {
		return c, nil
	}
	c, err := r.lookup(ctx, id)
	if err != nil {
		return storage.Client{}, fmt.Errorf("resolve client: %w", err)
	}
	r.clients.Put(id, c, r.cfg.Now().Add(clientTTL))
	return c, nil
}

// Current is Client by what is stored now, for an answer that a change on another replica
// must not get by. A document is kept for as long as it allows.
func (r *Registry) Current(ctx context.Context, id string) (storage.Client, error) {
	// What is read here does not come by way of what is kept: a request of before the change may keep what it
	// has read at any moment.
	r.Forget(id)
	if r.docs.handles(id) || id == "" || len(id) > maxIDLength {
		return r.Client(ctx, id)
	}
	c, err := r.lookup(ctx, id)
	if err != nil {
		return storage.Client{}, fmt.Errorf("resolve client: %w", err)
	}
	r.clients.Put(id, c, r.cfg.Now().Add(clientTTL))
	return r.unlessHeld(ctx)(c, nil)
}

// documented resolves a client that is identified by a document. Its row, which the
// first approval makes, tells whether it was deleted, and stands in while the document
// cannot be had, so that an outage elsewhere ends no session; a document that is invalid
// ends them. An unknown document is not fetched because a stranger names it (AS-154): that is
// for Fetch.
func (r *Registry) documented(ctx context.Context, id string) (storage.Client, error) {
	row, err := r.cfg.Store.Client(ctx, id)
	stored := err == nil
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return storage.Client{}, fmt.Errorf("resolve client: %w", err)
	}
	if _, known := r.docs.known(id); !known && !stored && r.docs.cfg.Trust.Of(id) == TrustAsk {
		if err := r.docs.checkID(id); err != nil {
			return storage.Client{}, err
		}
		return storage.Client{}, fmt.Errorf("resolve client: %w", ErrUnread)
	}
	c, docErr := r.docs.client(ctx, id, false)
	if docErr != nil && !errors.Is(docErr, storage.ErrNotFound) && stored {
		return row, nil
	}
	return c, docErr
}

// keepCopy brings the row of a client up to date with its document. A row of before would bring
// back what the document has given up, while that cannot be had: a redirect URI that belongs to
// another party by now, with the consents that people gave for it.
func (r *Registry) keepCopy(ctx context.Context, c storage.Client) {
	row, err := r.cfg.Store.Client(ctx, c.ID)
	if err == nil && row.Material() != c.Material() {
		err = r.cfg.Store.ReplaceClient(ctx, c, r.cfg.Now())
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrRevoked) {
		r.cfg.Logger.WarnContext(ctx, "the copy of a client metadata document was not stored",
			slog.String("client_id", c.ID), slog.Any("error", err))
	}
}

// ErrUnread means that an id is the URL of a document that has not been read here: Fetch
// does. It is storage.ErrNotFound.
var ErrUnread = fmt.Errorf("client metadata document not read yet: %w", storage.ErrNotFound)

// Fetch reads the document of a client whose id is a URL, again if what is kept of it is
// not from these seconds. Ask for it only on behalf of a person who has signed in. Errors
// are those of Client.
func (r *Registry) Fetch(ctx context.Context, id string) (storage.Client, error) {
	if !r.docs.handles(id) || len(id) > maxURILength {
		return storage.Client{}, fmt.Errorf("client id %.100q is no document: %w", id, storage.ErrNotFound)
	}
	if _, err := r.cfg.Store.Client(ctx, id); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return storage.Client{}, fmt.Errorf("resolve client: %w", err)
	}
	unread := storage.Client{ID: id, Source: storage.SourceCIMD}
	if err := r.checkHold(ctx, unread); err != nil { // before anything is fetched
		return unread, err
	}
	return r.docs.client(ctx, id, true)
}

// Vouched reports whether the operator knows a client: by having created it, or by
// allowing the place of its metadata document.
func (r *Registry) Vouched(c storage.Client) bool {
	return c.Operated() || c.Source == storage.SourceCIMD && r.docs.cfg.Trust.Of(c.ID) == TrustAllow
}

// Forget drops what is kept of a client, for a caller that has just deleted it.
func (r *Registry) Forget(id string) { r.clients.Drop(id) }

// lookup asks the store first, because only it knows about deletion.
func (r *Registry) lookup(ctx context.Context, id string) (storage.Client, error) {
	c, err := r.cfg.Store.Client(ctx, id)
	static, configured := r.static[id]
	switch {
	case errors.Is(err, storage.ErrRevoked):
		if sealed, openErr := r.sealer.open(id); openErr == nil {
			return sealed, err // for its name; it is refused all the same
		}
		return c, err
	case configured:
		return static, nil
	case err == nil && c.Source == storage.SourceConfig:
		return storage.Client{}, fmt.Errorf("it is no longer in the configuration: %w", storage.ErrNotFound)
	case !errors.Is(err, storage.ErrNotFound) || !strings.HasPrefix(id, idPrefix):
		return c, err
	}
	sealed, openErr := r.sealer.open(id)
	if openErr != nil {
		return c, err // an id that was never ours is simply not found
	}
	return sealed, nil
}

// registration is a client that is being created, or has been.
type registration struct {
	client storage.Client
	secret string // "" for a public client
	units  int    // that it takes in a row; none: all of it is in its id

	replaced bool // it took the place of an earlier one
}

// prepare makes a client of what is admitted of a request. Errors are protocol errors.
func (r *Registry) prepare(req *http.Request) (registration, error) {
	body, err := readBody(req)
	if err != nil {
		return registration{}, err
	}
	m, err := parseRequest(body)
	if err != nil {
		return registration{}, err
	}
	c, err := r.admit(req.Context(), m)
	if err != nil {
		return registration{}, err
	}
	c.Source, c.CreatedAt = storage.SourceDynamic, r.cfg.Now().UTC().Truncate(time.Second)
	if err := r.admitsApplication(req.Context(), c); err != nil {
		return registration{}, err
	}
	if sealed, secret, ok := r.sealer.seal(c); ok {
		return registration{client: sealed, secret: secret}, nil
	}
	c.ID = secrets.ID(idPrefix)
	secret := issueSecret(&c)
	units, err := kept(c)
	return registration{client: c, secret: secret, units: units}, err
}

// admitsApplication refuses a registration of an application that is held. It says why: whoever registers it has to
// ask the operator.
func (r *Registry) admitsApplication(ctx context.Context, c storage.Client) error {
	r.ForgetHolds()
	err := r.checkHold(ctx, c)
	if err != nil && !errors.Is(err, ErrHeld) {
		return unavailable(err)
	}
	return err
}

// store stores a registration that needs a row.
func (r *Registry) store(ctx context.Context, reg *registration) error {
	if reg.units == 0 {
		return nil
	}
	if err := r.cfg.Store.PutClient(ctx, reg.client); err != nil {
		return unavailable(err)
	}
	return nil
}

// issueSecret gives a confidential client a random secret and returns it.
func issueSecret(c *storage.Client) string {
	if !c.HasSecret() {
		return ""
	}
	secret := secrets.Token("")
	h := storage.Hash(secrets.Hash(secret))
	c.SecretHash = &h
	return secret
}
