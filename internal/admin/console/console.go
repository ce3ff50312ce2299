package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Root is the path of the pages, relative to the path of the issuer.
const Root = "/admin"

// Visitors handles users at browsers. A page is a path relative to the path of the issuer, with its
// query. authserver.Visitors implements it.
type Visitors interface {
	// Pages renders pages.
	Pages() *pages.Pages
	// Path returns the path of a page for browsers.
	Path(page string) string
	// Visit returns the signed-in user. Otherwise it answers with a redirect to sign-in that
	// returns to the page, and reports false.
	Visit(w http.ResponseWriter, r *http.Request, page string) (storage.Visit, bool)
	// Prove sends the browser to authenticate the user again and then to a page.
	Prove(w http.ResponseWriter, r *http.Request, page string)
	// SignOut returns the form that signs a user out.
	SignOut(w http.ResponseWriter, r *http.Request, u storage.User) (pages.AccountForm, error)
	// Fail shows the error page.
	Fail(w http.ResponseWriter, r *http.Request, err error)
	Forms
}

// Forms handles forms that are bound to one browser and one purpose.
type Forms interface {
	// Seal encrypts the hidden state of a form.
	Seal(w http.ResponseWriter, r *http.Request, purpose string, state any) (string, error)
	// Open reads a form and the state from Seal. If it cannot, it answers the request and reports
	// false.
	Open(w http.ResponseWriter, r *http.Request, purpose string, state any) (url.Values, bool)
	// Unseal decrypts a state from Seal, and reports whether it could.
	Unseal(w http.ResponseWriter, r *http.Request, purpose, sealed string, state any) bool
}

// Config configures the pages.
type Config struct {
	Visitors Visitors
	// As returns a caller with the permissions of an actor.
	As func(admin.Actor) admin.Caller
	// May returns admin.ErrForbidden if As would refuse the operation to an actor. It does not run
	// the operation.
	May func(context.Context, admin.Actor, admin.Verb, any) error
	// FreshFor is how recent an authentication must be for changes that cannot be undone, as for
	// As.
	FreshFor time.Duration
	// Requests records sent forms, so that each runs once. Ring encrypts their results.
	Requests storage.KeyedRequests
	Ring     *secrets.Ring
	Log      *slog.Logger
	Now      func() time.Time
}

// Console serves the pages. It is safe for concurrent use.
type Console struct {
	visitors Visitors
	cfg      Config
	verbs    map[string]admin.Verb // by name
}

// New returns the console.
func New(cfg Config) *Console {
	c := &Console{visitors: cfg.Visitors, cfg: cfg, verbs: make(map[string]admin.Verb)}
	for _, verb := range admin.All() {
		c.verbs[verb.Spec().Name] = verb
	}
	return c
}

// maxQuery limits the query of a page, in bytes.
const maxQuery = 4 << 10

// ServeHTTP serves the pages below Root, for GET and POST.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(r.URL.RawQuery) > maxQuery {
		c.visitors.Fail(w, r, sentence.NewError(oauth.InvalidRequest, "The request is too long.", "request_long"))
		return
	}
	below := strings.TrimPrefix(r.URL.Path, c.visitors.Path(Root))
	here := Root + below
	if r.URL.RawQuery != "" {
		here += "?" + r.URL.RawQuery
	}
	visit, ok := c.visitors.Visit(w, r, here)
	if !ok {
		return
	}
	role := admin.RoleOf(visit.User)
	actor := admin.Actor{
		UserID: visit.User.ID, Name: visit.User.Name, Role: role, Proved: visit.Session.Proved(),
	}
	v := &view{
		Console: c, w: w, r: r, here: here, visit: visit, role: role, actor: actor, as: c.cfg.As(actor),
	}
	v.open(strings.ReplaceAll(strings.Trim(below, "/"), "/", " "))
}

// open shows the page of an operation, or runs it.
func (v *view) open(name string) {
	if _, ok := v.verbs[name+" list"]; ok {
		name += " list"
	}
	verb, known := v.verbs[name]
	switch {
	case v.role == "":
		v.stop(http.StatusForbidden, "No role", "Your account administers nothing here. An administrator can give it a "+
			"role: mcp-authd user set-role "+v.visit.User.Name+" auditor")
	case name == "":
		v.overview()
	case name == bundlePage && v.r.Method == http.MethodGet:
		v.bundle()
	case name == proofPage && v.r.Method == http.MethodGet:
		v.proofFile()
	case !known:
		v.stop(http.StatusNotFound, "Not found", "There is no such page. It may be of another version of this server.")
	case !verb.Spec().Permits(v.role):
		v.stop(http.StatusForbidden, "Not for your role", "The role "+string(v.role)+" may not do this.")
	case v.r.Method == http.MethodPost:
		v.act(verb)
	case verb.Spec().HasBody():
		v.ask(verb)
	case listed(verb):
		v.list(verb)
	default:
		v.show(verb)
	}
}

// failed shows the error of an operation.
func (v *view) failed(err error) {
	status, ok := statusOf(err)
	if stale := (*admin.StaleError)(nil); errors.As(err, &stale) {
		v.visitors.Prove(v.w, v.r, v.here)
		return
	}
	if proposed := (*admin.ProposedError)(nil); errors.As(err, &proposed) {
		v.waits(proposed.Proposal)
		return
	}
	if !ok {
		v.visitors.Fail(v.w, v.r, err)
		return
	}
	v.later(status)
	v.stop(status, titles[status], err.Error())
}

// later sets when to retry if the status is temporary.
func (v *view) later(status int) {
	if status == http.StatusServiceUnavailable {
		v.w.Header().Set("Retry-After", "5")
	}
}

var titles = map[int]string{
	http.StatusForbidden:          "Not for your role",
	http.StatusNotFound:           "Not found",
	http.StatusConflict:           "Not done",
	http.StatusBadRequest:         "Not done",
	http.StatusServiceUnavailable: "Not now",
}

// statusOf returns the status for an error whose text is for users.
func statusOf(err error) (int, bool) {
	for kind, status := range map[error]int{
		admin.ErrForbidden:   http.StatusForbidden,
		admin.ErrNotFound:    http.StatusNotFound,
		admin.ErrConflict:    http.StatusConflict,
		admin.ErrInvalid:     http.StatusBadRequest,
		admin.ErrUnavailable: http.StatusServiceUnavailable,
		admin.ErrInterrupted: http.StatusServiceUnavailable,
		admin.ErrUnkept:      http.StatusServiceUnavailable,
	} {
		if errors.Is(err, kind) {
			return status, true
		}
	}
	return 0, false
}
