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

	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/recent"
	"github.com/mcp-authd/mcp-authd/internal/safehttp"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// maxIDLength limits the length of a client ID that is looked up, in bytes.
const maxIDLength = 512

// Config configures a Registry. Store and SecretKeys are required.
type Config struct {
	// Store holds the clients that have a row, and the tombstones.
	Store storage.Clients
	// SecretKeys are the master keys, the primary first. New client IDs are sealed with the
	// primary. IDs sealed with any of the keys can be opened.
	SecretKeys [][]byte
	// Holds returns the applications that are paused or blocked. Their clients are refused. Nil:
	// none.
	Holds Holds
	// Redirects configures which redirect URIs clients may register in addition to https and
	// loopback http. If PrivateUseSchemes is nil, oauth.DesktopSchemes applies; if empty, no
	// schemes.
	Redirects oauth.RedirectPolicy
	// KnownScopes returns the scopes that can be granted. Other scopes are dropped from
	// registrations. Nil: every scope.
	KnownScopes func(context.Context) oauth.Scopes
	// DefaultScopes returns the scopes in the response to a client that asked for no known scope.
	// They do not restrict the client. Nil: none.
	DefaultScopes func(context.Context) oauth.Scopes
	// Limits bounds the registrations from one network.
	Limits Limits
	// Allowances shares the counters of Limits between all replicas. Nil: each replica counts
	// alone.
	Allowances storage.Allowances
	// ClientAddr returns the client address of a request, also behind trusted proxies. Nil: the
	// address of the connection.
	ClientAddr func(*http.Request) netip.Addr
	// Clients are the clients from the configuration. They are known as long as they are listed
	// here, regardless of the store, unless they were deleted.
	Clients []storage.Client
	// Disabled refuses new registrations. Registered clients remain.
	Disabled bool
	// MachineClients lets confidential clients register themselves for client_credentials. Anyone
	// who can reach the server can then get a token without a user (AS-178). Leave it off unless
	// the server is on a closed network.
	MachineClients bool
	// Endpoint is the URL of the registration endpoint. It is the base of the URLs where clients
	// manage their registrations (RFC 7592 §3). Empty: management is not offered.
	Endpoint string
	// Documents configures clients that are identified by a metadata document.
	Documents Documents

	Audit  *audit.Recorder  // nil: discarded
	Logger *slog.Logger     // nil: discarded
	Now    func() time.Time // nil: time.Now
	// DocumentAsked, if set, is called on each use of a client metadata document with whether it
	// was cached.
	DocumentAsked func(hit bool)
}

const (
	// clientTTL is how long a client is cached, so that the requests of one sign-in share one read
	// of the store. A deletion on another replica may go unnoticed for as long.
	clientTTL  = 5 * time.Second
	maxClients = 10_000
)

// Registry registers clients and resolves their IDs. It is safe for concurrent use.
type Registry struct {
	cfg     Config
	sealer  *sealer
	static  map[string]storage.Client
	clients *bounded.Map[string, storage.Client] // existing clients only: an unknown ID may be created at any moment
	limiter *limiter
	holds   *recent.Value[map[string]storage.Hold]
	docs    *documents
	// Clients that the administrator vouches for have their own key sets, and so have clients that
	// a user has approved. Self-registered strangers therefore cannot use up their fetch allowance.
	vouched, approved, strange *keySets
}

// New returns a registry, or an error if c is invalid.
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

// Attach supplies settings of the authorization server: its issuer, its known and default scopes,
// and how to find a client address. Each applies only where Config leaves it unset. authserver.New
// calls it before anything is served. A complete Config needs no call.
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

// OffersDocuments reports whether client IDs may be URLs of metadata documents.
func (r *Registry) OffersDocuments() bool { return r.cfg.Documents.Enabled }

// Client resolves a client ID: a stored row first, else the sealed ID itself. It returns
// storage.ErrNotFound if the ID is neither and storage.ErrRevoked if the client was deleted.
//
// A result is cached for a few seconds. Until it expires, a deletion on another replica may go
// unnoticed here, but the store never acts for a deleted client. The slices of the returned client
// are shared: do not modify them.
//
// A client whose application the administrator holds is returned with an *oauth.Error that wraps
// ErrHeld.
func (r *Registry) Client(ctx context.Context, id string) (storage.Client, error) {
	return r.unlessHeld(ctx)(r.resolve(ctx, id))
}

// unlessHeld returns a function that adds an error to a resolved client if its application is held.
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

// Current is like Client but reads the store, for decisions that must not miss a change on another
// replica. A metadata document is still cached for as long as it allows.
func (r *Registry) Current(ctx context.Context, id string) (storage.Client, error) {
	// Bypass the cache for this read: an earlier request may still cache its outdated result at any
	// moment.
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

// documented resolves a client that is identified by a document.
//
// The client's row, created at its first approval, records whether it was deleted. While the
// document is unavailable the row replaces it, so that an outage of another site ends no session.
// An invalid document does end them.
//
// An unknown document is not fetched just because a stranger names it (AS-154). Fetch does that.
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

// keepCopy updates a client's row from its document. While the document is unavailable, an outdated
// row would restore data that the document has dropped. One example is a redirect URI that now
// belongs to another party, along with the consents that users gave for it.
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

// ErrUnread means that an ID is the URL of a document that this process has not read. Fetch reads
// it. ErrUnread wraps storage.ErrNotFound.
var ErrUnread = fmt.Errorf("client metadata document not read yet: %w", storage.ErrNotFound)

// Fetch reads the document of a client whose ID is a URL. It fetches the document again if the
// cached copy is older than documentRetry. Call it only on behalf of a signed-in user. Errors are
// as for Client.
func (r *Registry) Fetch(ctx context.Context, id string) (storage.Client, error) {
	if !r.docs.handles(id) || len(id) > maxURILength {
		return storage.Client{}, fmt.Errorf("client id %.100q must be the URL of a document: %w", id, storage.ErrNotFound)
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

// Vouched reports whether the administrator created a client or allows the URL of its metadata
// document.
func (r *Registry) Vouched(c storage.Client) bool {
	return c.Operated() || c.Source == storage.SourceCIMD && r.docs.cfg.Trust.Of(c.ID) == TrustAllow
}

// Forget drops a client from the cache, for a caller that has just deleted it.
func (r *Registry) Forget(id string) { r.clients.Drop(id) }

// lookup asks the store first, because only the store knows about deletions.
func (r *Registry) lookup(ctx context.Context, id string) (storage.Client, error) {
	c, err := r.cfg.Store.Client(ctx, id)
	static, configured := r.static[id]
	switch {
	case errors.Is(err, storage.ErrRevoked):
		if sealed, openErr := r.sealer.open(id); openErr == nil {
			return sealed, err // for its name; the caller still refuses it
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
		return c, err // an ID that this server did not issue
	}
	return sealed, nil
}

// registration is a client that is being created, or was created.
type registration struct {
	client storage.Client
	secret string // "" for a public client
	units  int    // storedUnits in a row; 0: everything is in the ID

	replaced bool // it replaces an earlier registration
}

// prepare reads a request and returns the client to register. Errors are protocol errors.
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

// admitsApplication refuses to register a held application. The error names the reason, so that the
// developer can ask the administrator.
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

// issueSecret sets a random secret for a confidential client and returns it.
func issueSecret(c *storage.Client) string {
	if !c.HasSecret() {
		return ""
	}
	secret := secrets.Token("")
	h := storage.Hash(secrets.Hash(secret))
	c.SecretHash = &h
	return secret
}
