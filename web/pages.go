package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"
)

//go:embed templates/*.html
var templateFiles embed.FS

// Config is what the pages of one server have in common.
type Config struct {
	// ProductName is how the server calls itself to people; default "mcp-authd".
	ProductName string
	// Prefix is the path of the issuer without a closing slash ("" or "/auth"): the
	// pages link to Prefix + "/assets/..." and Prefix + "/".
	Prefix string
}

// Pages renders every page. It is safe for concurrent use.
type Pages struct {
	assets assets
	pages  map[string]*template.Template
	bodies sync.Pool // of *bytes.Buffer
}

// pageNames are the templates that fill the layout, one file each.
var pageNames = [...]string{
	"login", "consent", "error", "stopped", "handoff", "setup", "setupdone", "home", "signedout",
	"providerconsent", "providerredirect", "failed", "connect", "connected", "claim",
}

// New parses the templates and prepares the assets. An error means that a template
// of ours is broken or that the prefix is not a path.
func New(c Config) (*Pages, error) {
	if c.ProductName == "" {
		c.ProductName = "mcp-authd"
	}
	if c.Prefix != "" && (!strings.HasPrefix(c.Prefix, "/") || strings.HasSuffix(c.Prefix, "/")) {
		return nil, fmt.Errorf("web: prefix %q must begin with a slash and not end with one", c.Prefix)
	}
	a, err := loadAssets(c.Prefix)
	if err != nil {
		return nil, err
	}
	p := &Pages{assets: a, pages: make(map[string]*template.Template)}
	base := template.New("layout.html").Funcs(template.FuncMap{
		"product": func() string { return c.ProductName },
		"home":    func() string { return c.Prefix + "/" },
		"asset":   a.url,
		"name":    cleanName, "claim": cleanClaim, "text": cleanText, "address": cleanAddress,
		"link": link, "scheme": privateScheme,
	})
	if base, err = base.ParseFS(templateFiles, "templates/layout.html", "templates/parts.html",
		"templates/icons.html"); err != nil {
		return nil, fmt.Errorf("web: parse the layout: %w", err)
	}
	for _, name := range pageNames {
		page, err := base.Clone()
		if err == nil {
			page, err = page.ParseFS(templateFiles, "templates/"+name+".html")
		}
		if err != nil {
			return nil, fmt.Errorf("web: parse page %s: %w", name, err)
		}
		constant(page, a.words(c))
		p.pages[name] = page
	}
	return p, nil
}

// Assets serves GET and HEAD of "/assets/<name>.<hash>.<ext>". The names change with
// the content, so browsers keep them. Strip Config.Prefix before.
func (p *Pages) Assets() http.Handler { return p.assets }

// Icon is where the icon of this server is.
func (p *Pages) Icon() string { return p.assets.prefix + p.assets.paths["icon.svg"] }

// Login shows the sign-in page. Its form posts username, password and step.
func (p *Pages) Login(w http.ResponseWriter, status int, v Login) {
	p.show(w, status, "login", v, policy{formTargets: v.FormTargets, keepOpener: true})
}

// Consent shows who asks for what. Its form posts decision (approve or deny) and step.
func (p *Pages) Consent(w http.ResponseWriter, status int, v Consent) {
	p.show(w, status, "consent", v, policy{formTargets: v.FormTargets, keepOpener: true, script: true})
}

// Error shows what went wrong when there is no way back to an application.
func (p *Pages) Error(w http.ResponseWriter, status int, v Error) {
	p.show(w, status, "error", v, policy{})
}

// Stopped shows why the request of a self-registered client was not carried out, and
// offers the way back that a trusted client would have been sent without asking.
func (p *Pages) Stopped(w http.ResponseWriter, status int, v Stopped) {
	p.show(w, status, "stopped", v, policy{keepOpener: true})
}

// Handoff opens an application by its private-use scheme. A redirect alone would leave
// the person before a form that is spent, and browsers may refuse one that no click
// caused: so this page comes first, tries at once, and has a button.
func (p *Pages) Handoff(w http.ResponseWriter, v Handoff) {
	if target := link(v.URL); target != "" {
		w.Header().Set("Refresh", "0; url="+string(target))
	}
	p.show(w, http.StatusOK, "handoff", v, policy{keepOpener: true})
}

// ProviderConsent shows who asks for what, and at which provider the person will sign in. Its
// form posts decision (approve or deny) and step.
func (p *Pages) ProviderConsent(w http.ResponseWriter, status int, v ProviderConsent) {
	p.show(w, status, "providerconsent", v, policy{formTargets: v.FormTargets, keepOpener: true, script: true})
}

// ProviderRedirect sends the browser to a provider. It stands between the form that approves and
// the provider, because Chromium holds every redirect after a form post against
// form-action until a page has loaded, and we cannot list where a provider redirects to
// before it shows one, or none at all: to the identity provider of a company, and back
// through us to the client.
func (p *Pages) ProviderRedirect(w http.ResponseWriter, v ProviderRedirect) {
	if target := link(v.URL); target != "" {
		w.Header().Set("Refresh", "0; url="+string(target))
	}
	p.show(w, http.StatusOK, "providerredirect", v, policy{keepOpener: true})
}

// Failed shows why a sign-in at a provider did not work out, and what to do. It stays until
// the person goes on: the number on it is what the operator asks for.
func (p *Pages) Failed(w http.ResponseWriter, status int, v Failed) {
	p.show(w, status, "failed", v, policy{keepOpener: true})
}

// Connect shows which MCP server wants what of the person's account at a provider. Its
// form posts decision (approve or deny) and step.
func (p *Pages) Connect(w http.ResponseWriter, v Connect) {
	p.show(w, http.StatusOK, "connect", v, policy{formTargets: v.FormTargets, keepOpener: true, script: true})
}

// Claim asks whether an account at a provider is the person's. Its form posts decision
// (approve or deny) and step.
func (p *Pages) Claim(w http.ResponseWriter, v Claim) {
	p.show(w, http.StatusOK, "claim", v, policy{keepOpener: true, script: true})
}

// Connected shows what has become of that.
func (p *Pages) Connected(w http.ResponseWriter, v Connected) {
	p.show(w, http.StatusOK, "connected", v, policy{keepOpener: true})
}

// Setup shows the form that makes the first administrator. It posts username,
// password, token and step.
func (p *Pages) Setup(w http.ResponseWriter, status int, v Setup) {
	p.show(w, status, "setup", v, policy{script: true, connect: true})
}

// SetupDone shows that the first administrator exists, and what to do next.
func (p *Pages) SetupDone(w http.ResponseWriter, v SetupDone) {
	p.show(w, http.StatusOK, "setupdone", v, policy{})
}

// Home shows the start page: who is signed in, and which MCP servers there are.
func (p *Pages) Home(w http.ResponseWriter, v Home) {
	p.show(w, http.StatusOK, "home", v, policy{formTargets: v.FormTargets})
}

// SignedOut shows that the session has ended.
func (p *Pages) SignedOut(w http.ResponseWriter) {
	p.show(w, http.StatusOK, "signedout", nil, policy{})
}

// show renders to memory first: a page is sent whole or not at all.
func (p *Pages) show(w http.ResponseWriter, status int, page string, view any, rules policy) {
	body, ok := p.bodies.Get().(*bytes.Buffer)
	if !ok {
		body = new(bytes.Buffer)
	}
	body.Reset()
	defer p.bodies.Put(body)
	if err := p.pages[page].Execute(body, view); err != nil {
		// The templates are tested with every view; this is a defect of ours, and the
		// person must not be shown its innards.
		rules.set(w.Header())
		http.Error(w, "The page could not be shown. Please try again.", http.StatusInternalServerError)
		return
	}
	rules.set(w.Header())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the person has gone
}
