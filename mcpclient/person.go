package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/signin"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// PersonConfig states which MCP server a user signs in to, and how. Server, Store, and either
// ClientName or ClientID are REQUIRED.
type PersonConfig struct {
	// Server is the URL of the MCP server: https, or http on this machine.
	Server string
	// ClientName is the name of the program, which users see when they sign in.
	ClientName string
	// Store keeps the sign-in, so that the user stays signed in when the program starts again.
	Store Store
	// Account tells several accounts of one user at the server apart. It is a name of the program's
	// choice. Default: one account.
	Account string

	// ClientID is an id that the operator of the authorization server assigned, or the URL of the
	// program's client metadata document. Default, and if the server does not read such documents:
	// the program registers itself.
	ClientID string
	// Redirect is a redirect URI of ClientID on this computer. Without a port, the program listens
	// on any free port. Default: http://127.0.0.1/callback.
	Redirect string
	// AuthorizationServer is the only issuer that the user may sign in at, whatever the MCP server
	// names. Default: the first issuer in the MCP server's metadata.
	AuthorizationServer string
	// Scopes are the scopes to request first. Default: the scopes in the MCP server's challenge,
	// else in its metadata.
	Scopes []string

	// OpenBrowser opens a URL in the user's browser. Default: the browser of the desktop.
	OpenBrowser func(ctx context.Context, url string) error
	// Ask tells the user what to do. It is called after OpenBrowser and must not block. Default:
	// lines on standard error.
	Ask func(context.Context, Prompt)
	// Paste returns the URL at which the user's browser ended, if the browser is on another
	// computer. It is called if no browser can be opened, and must return when ctx ends. Default:
	// no pasting.
	Paste func(ctx context.Context) (string, error)
	// Device makes the user approve the sign-in on another device, without a browser here (RFC
	// 8628). It is also used if no browser can be opened and there is no Paste.
	Device bool
	// Unattended makes calls fail with ErrSignIn when a user would have to act.
	Unattended bool

	// DPoP binds tokens to a key. The default key is created at sign-in and kept in Store. Default:
	// bound if the MCP server requires it.
	DPoP *DPoP
	// Transport sends all requests to the MCP server and its authorization server. Default:
	// http.DefaultTransport.
	Transport http.RoundTripper
}

// Prompt is an action for the user. One of URL, Device and Waiting is set.
type Prompt struct {
	URL    string // to open in a browser, unless Opened
	Opened bool   // the browser has been opened
	Device DevicePrompt
	// Waiting is the MCP server's text about a call that another person must approve.
	Waiting string
}

// DevicePrompt is a code to approve on another device.
type DevicePrompt struct {
	URL, Code string
	// Complete is URL with the code, for a QR code. It may be "".
	Complete string
	Expires  time.Time
}

// ErrSignIn means that a user must sign in, and that the program is unattended.
var ErrSignIn = errors.New("mcpclient: a user must sign in")

// Person is a user who is signed in to one MCP server. It is safe for concurrent use.
type Person struct {
	c       PersonConfig
	desktop bool // OpenBrowser is the default
	key     string
	origin  string
	now     func() time.Time
	again   time.Duration // between attempts of a call that waits for approval
	busy    chan struct{} // held by the one goroutine that gets a token

	mu   sync.Mutex // guards have
	have access
}

// access is a sign-in, and the client that uses it.
type access struct {
	signin.Kept
	client *signin.Client
}

// The steps of a person's sign-in. The others are those of Step.
const (
	stepStore = "store"
	stepCall  = "call"
)

const (
	signInTime = 5 * time.Minute // limit for the user
	// early is the time before expiry when a token is no longer used.
	early = 10 * time.Second
)

// NewPerson returns the user of a program. It sends nothing. The first request or [Person.Token]
// makes the user sign in, unless an earlier sign-in in c.Store is still valid.
func NewPerson(c PersonConfig) (*Person, error) {
	switch {
	case discovery.CheckURL(c.Server) != nil:
		return nil, errors.New("mcpclient: Server must be the https URL of an MCP server")
	case c.Store == nil:
		return nil, errors.New("mcpclient: PersonConfig must have a Store, such as FileStore or MemoryStore")
	case c.ClientName == "" && c.ClientID == "":
		return nil, errors.New("mcpclient: PersonConfig must have a ClientName or a ClientID")
	}
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	desktop := c.OpenBrowser == nil
	if desktop {
		c.OpenBrowser = openDesktop
	}
	if c.Ask == nil {
		c.Ask = askOnTerminal
	}
	return &Person{
		c:       c,
		desktop: desktop,
		key:     signin.KeyOf(c.Server, c.Account),
		origin:  discovery.Origin(c.Server),
		now:     time.Now,
		again:   approvalPoll,
		busy:    make(chan struct{}, 1),
	}, nil
}

// openDesktop opens the browser of the desktop, if there is one.
func openDesktop(ctx context.Context, url string) error {
	if err := signin.Desktop(); err != nil {
		return err
	}
	return signin.OpenBrowser(ctx, url)
}

func askOnTerminal(_ context.Context, p Prompt) { _, _ = io.WriteString(os.Stderr, p.String()) }

// String returns lines for a terminal.
func (p Prompt) String() string {
	switch {
	case p.Waiting != "":
		return fmt.Sprintf("The call waits for a person's approval: %s\n", printable(p.Waiting))
	case p.Device.Code != "":
		return fmt.Sprintf("Sign in: open %s on any device and type the code %s\n", printable(p.Device.URL),
			printable(p.Device.Code))
	}
	return fmt.Sprintf("Sign in: open this URL and approve\n\n%s\n\n", p.URL)
}

// HTTPClient returns an HTTP client for calls to the MCP server, for use in the transport of an MCP
// SDK. It has no timeout, because streams stay open; use a context with requests.
func (p *Person) HTTPClient() *http.Client {
	return &http.Client{Transport: p, CheckRedirect: discovery.NoRedirect}
}

// TokenSource returns a source of access tokens. A bound token (TokenType DPoP) needs a proof with
// each request: HTTPClient adds it, an oauth2.Transport does not.
func (p *Person) TokenSource() oauth2.TokenSource { return personSource{p} }

type personSource struct{ person *Person }

// Token implements oauth2.TokenSource.
func (s personSource) Token() (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(context.Background(), signInTime+renewalTime)
	defer cancel()
	return s.person.Token(ctx)
}

// Token returns a valid access token. It refreshes the token or makes the user sign in if necessary.
// The error is an *Error, ErrSignIn or the error of ctx.
func (p *Person) Token(ctx context.Context) (*oauth2.Token, error) {
	a, err := p.access(ctx, want{})
	if err != nil {
		return nil, err
	}
	o := &oauth2.Token{AccessToken: a.Access, TokenType: a.kind(), Expiry: a.ExpiresAt}
	return o.WithExtra(map[string]any{"scope": a.Scopes.String()}), nil
}

func (a access) kind() string {
	if a.TokenType == "" {
		return "Bearer"
	}
	return a.TokenType
}

// SignOut revokes the user's tokens at the authorization server and deletes the sign-in. It reports
// whether there was one. A server without a revocation endpoint is not an error. If the server
// cannot be reached, the sign-in stays, so that SignOut can be repeated.
func (p *Person) SignOut(ctx context.Context) (signedIn bool, err error) {
	unlock, err := p.c.Store.Lock(ctx, p.key)
	if err != nil {
		return false, err
	}
	defer unlock()
	a, err := p.load(ctx)
	if err != nil || a.ClientID == "" {
		return false, err
	}
	if err := p.revoke(ctx, a); err != nil {
		return true, of(stepToken, err)
	}
	p.set(access{})
	return true, p.c.Store.Delete(ctx, p.key)
}

// revoke revokes a sign-in, at a server that can do it.
func (p *Person) revoke(ctx context.Context, a access) error {
	token := a.Refresh
	if token == "" {
		token = a.Access
	}
	if token == "" {
		return nil
	}
	server, err := a.client.Find(ctx, a.Issuer)
	if err != nil || server.RevocationEndpoint == "" {
		return err
	}
	return a.client.Revoke(ctx, server, a.credentials(), token)
}

func (a access) credentials() signin.Credentials {
	return signin.Credentials{ID: a.ClientID, Secret: a.Secret}
}

func (p *Person) current() access {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.have
}

func (p *Person) set(a access) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.have = a
}

// load reads the sign-in from the store. Only the parts of a sign-in that this configuration may use
// are returned.
func (p *Person) load(ctx context.Context) (access, error) {
	data, err := p.c.Store.Load(ctx, p.key)
	if err != nil {
		return access{}, err
	}
	kept := signin.ReadKept(data)
	if pinned := p.c.AuthorizationServer; pinned != "" && kept.Issuer != pinned {
		kept = signin.Kept{}
	}
	if have := p.current(); have.client != nil && have.Access == kept.Access && have.Refresh == kept.Refresh {
		return have, nil
	}
	signer, err := p.signer(kept.Key)
	if err != nil {
		return access{}, err
	}
	if p.c.DPoP != nil && !p.c.DPoP.Optional && !strings.EqualFold(kept.TokenType, "DPoP") {
		kept.Access, kept.Refresh = "", "" // from a time without DPoP
	}
	return access{kept, p.client(signer)}, nil
}

// signer returns the signer for a kept key, or nil if tokens are not bound.
func (p *Person) signer(key []byte) (*dpop.Signer, error) {
	switch {
	case p.c.DPoP != nil && p.c.DPoP.Key != nil:
		return p.c.DPoP.signer()
	case len(key) > 0:
		return signerOf(key)
	}
	return nil, nil
}

// client returns a client whose tokens are bound to a key, or not bound if signer is nil.
func (p *Person) client(signer *dpop.Signer) *signin.Client {
	c := signin.NewThrough(p.c.Transport)
	if c.Name = p.c.ClientName; signer != nil {
		c = c.Bound(signer)
	}
	return c
}

// isOurs reports whether u has the origin that tokens are for.
func (p *Person) isOurs(u *url.URL) bool {
	return discovery.Origin((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}).String()) == p.origin
}

// secure rejects URLs that would send tokens of an https MCP server in clear or to this machine.
func (p *Person) secure(urls ...string) error {
	for _, raw := range urls {
		if raw == "" {
			continue
		}
		if err := discovery.CheckURL(raw); err != nil {
			return fail(discovery.StepMetadata, "The server's metadata is broken.", "%v", err)
		}
		if isHTTPS(p.origin) && !isHTTPS(raw) {
			return fail(discovery.StepMetadata, "Serve the authorization server over https.", "%s is not an https URL",
				printable(raw))
		}
	}
	return nil
}

// want holds the requirements for a token.
type want struct {
	not    string       // a refused token
	person bool         // the user must sign in, because a refreshed token would also be refused
	moved  bool         // the MCP server may have another authorization server
	scopes oauth.Scopes // to request in addition
	proof  signin.Proof // required of the user
	header http.Header  // of the refusal
}
