package pages

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-authd/mcp-authd/internal/text"
)

// Config configures the pages of one server.
type Config struct {
	// ProductName is the name of the server on the pages; default "mcp-authd".
	ProductName string
	// Prefix is the path of the issuer without a trailing slash ("" or "/auth"). Pages link to
	// Prefix + "/assets/..." and Prefix + "/".
	Prefix string
	// Branding customizes look and texts.
	Branding Branding
}

// Pages renders every page in one language. For returns the pages in other languages. It is safe
// for concurrent use.
type Pages struct {
	*shared
	language *text.Language
	pages    map[string]func() (*template.Template, error)
	back     string // where to return to after a choice of language; "": no language menu
}

// shared is the part that the pages of all languages share.
type shared struct {
	assets    assets
	texts     *text.Catalogues
	languages map[*text.Language]func() *Pages
	parts     map[string]string // layout parts replaced by the branding
	words     map[string]string // values that are the same on every page
	choices   []LanguageChoice
	choose    string    // target of the language menu
	bodies    sync.Pool // of *bytes.Buffer
}

// New parses the templates, prepares the assets and returns the English pages. It returns an error
// if a built-in template or text is broken, the branding is invalid, or the prefix is not a path.
func New(c Config) (*Pages, error) {
	if c.ProductName == "" {
		c.ProductName = "mcp-authd"
	}
	if c.Prefix != "" && (!strings.HasPrefix(c.Prefix, "/") || strings.HasSuffix(c.Prefix, "/")) {
		return nil, fmt.Errorf("pages: prefix %q must begin with a slash and not end with one", c.Prefix)
	}
	all := &shared{languages: make(map[*text.Language]func() *Pages)}
	var err error
	if all.assets, err = loadAssets(c.Prefix); err != nil {
		return nil, err
	}
	if all.texts, err = text.Load(c.Branding.Texts); err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	base, err := layout()
	if err != nil {
		return nil, err
	}
	if all.parts, err = c.Branding.dress(&all.assets); err != nil {
		return nil, err
	}
	all.words = all.assets.words(c)
	all.choose = c.Prefix + "/language"
	for _, l := range all.texts.Languages() {
		all.choices = append(all.choices, LanguageChoice{Tag: l.Tag, Name: l.Name()})
		all.languages[l] = sync.OnceValue(func() *Pages { return all.in(l, base) })
	}
	return all.languages[all.texts.Match()](), nil
}

// For returns the pages in the best language for the given preferences, the first before the
// second. Each is a list in the format of Accept-Language or ui_locales, or "".
func (p *Pages) For(wishes ...string) *Pages {
	l := p.texts.Match(wishes...)
	if l == p.language {
		return p
	}
	return p.languages[l]()
}

// Offers reports whether there are pages in the language with a tag.
func (p *Pages) Offers(tag string) bool { return slices.Contains(p.Languages(), tag) }

// Speaks returns the best language for a list of preferences, and whether it matches one of them.
func (p *Pages) Speaks(wishes string) (tag string, ok bool) {
	l, ok := p.texts.Find(wishes)
	if !ok {
		return "", false
	}
	return l.Tag, true
}

// Language returns the language tag of these pages (BCP 47).
func (p *Pages) Language() string { return p.language.Tag }

// Languages returns the tags of all available languages.
func (p *Pages) Languages() (tags []string) {
	for _, l := range p.texts.Languages() {
		tags = append(tags, l.Tag)
	}
	return tags
}

// Texts returns the texts of the pages in every language.
func (p *Pages) Texts() *text.Catalogues { return p.texts }

// Assets serves GET and HEAD of "/assets/<name>.<hash>.<ext>". The names change with the content,
// so browsers cache them permanently. Strip Config.Prefix first.
func (p *Pages) Assets() http.Handler { return p.assets }

// Icon returns the path of the server's icon.
func (p *Pages) Icon() string { return p.assets.prefix + p.assets.paths["icon.svg"] }

// Login shows the sign-in page. Its form posts username, password and step.
func (p *Pages) Login(w http.ResponseWriter, status int, v Login) {
	p.show(w, status, "login", v,
		policy{leaves: true, keepOpener: true, script: v.Passkey != nil})
}

// Consent shows who requests which access. Its form posts decision (approve or deny) and step. With
// up to five scopes, the style sheet keeps the decision on the first screen (PE-11).
func (p *Pages) Consent(w http.ResponseWriter, status int, v Consent) {
	p.show(w, status, "consent", v, policy{leaves: true, keepOpener: true, script: true})
}

// Confirm shows the account that an application gets access to. Its form posts decision (approve,
// deny or another) and step.
func (p *Pages) Confirm(w http.ResponseWriter, v Confirm) {
	p.show(w, http.StatusOK, "confirm", v, policy{leaves: true, keepOpener: true, script: true})
}

// Chooser asks which account to continue with. Its forms post step.
func (p *Pages) Chooser(w http.ResponseWriter, v Chooser) {
	p.show(w, http.StatusOK, "chooser", v, policy{leaves: true, keepOpener: true})
}

// Error shows an error without a way back to an application.
func (p *Pages) Error(w http.ResponseWriter, status int, v Error) {
	p.show(w, status, "error", v, policy{})
}

// Stopped shows why a self-registered client's request was refused. It offers the link back that a
// trusted client would be redirected to without asking.
func (p *Pages) Stopped(w http.ResponseWriter, status int, v Stopped) {
	p.show(w, status, "stopped", v, policy{keepOpener: true})
}

// Handoff opens an application by its private-use scheme. A redirect alone would leave the user on
// a form that is already used, and browsers may block one without a click. This page tries
// immediately and has a button.
func (p *Pages) Handoff(w http.ResponseWriter, v Handoff) {
	if target := link(v.URL); target != "" {
		w.Header().Set("Refresh", "0; url="+string(target))
	}
	p.show(w, http.StatusOK, "handoff", v, policy{keepOpener: true})
}

// ProviderConsent shows who requests which access, and the provider where the user will sign in.
// Its form posts decision (approve or deny) and step.
func (p *Pages) ProviderConsent(w http.ResponseWriter, status int, v ProviderConsent) {
	p.show(w, status, "providerconsent", v, policy{leaves: true, keepOpener: true, script: true})
}

// Failed shows why a sign-in at a provider failed, and the next step. It stays until the user
// continues, because the administrator needs the reference on it.
func (p *Pages) Failed(w http.ResponseWriter, status int, v Failed) {
	p.show(w, status, "failed", v, policy{keepOpener: true})
}

// Connect shows which MCP server requests more access to the user's account at a provider. Its form
// posts decision (approve or deny) and step.
func (p *Pages) Connect(w http.ResponseWriter, v Connect) {
	p.show(w, http.StatusOK, "connect", v, policy{leaves: true, keepOpener: true, script: true})
}

// Claim asks whether an account at a provider belongs to the user. Its form posts decision (approve
// or deny) and step.
func (p *Pages) Claim(w http.ResponseWriter, v Claim) {
	p.show(w, http.StatusOK, "claim", v, policy{leaves: true, keepOpener: true, script: true})
}

// Connected shows the result of Connect.
func (p *Pages) Connected(w http.ResponseWriter, v Connected) {
	p.show(w, http.StatusOK, "connected", v, policy{keepOpener: true})
}

// Answer shows an authorization response that the user can carry to another computer.
func (p *Pages) Answer(w http.ResponseWriter, v Answer) {
	p.show(w, http.StatusOK, "answer", v, policy{})
}

// DeviceCode shows the form for the code that a device displays. The form sends user_code with GET.
func (p *Pages) DeviceCode(w http.ResponseWriter, status int, v DeviceCode) {
	p.show(w, status, "devicecode", v, policy{})
}

// Device shows which device requests which access. Its form posts decision (approve or deny) and
// step.
func (p *Pages) Device(w http.ResponseWriter, v Device) {
	p.show(w, http.StatusOK, "device", v, policy{script: true})
}

// DeviceDone shows the result of Device.
func (p *Pages) DeviceDone(w http.ResponseWriter, v DeviceDone) {
	p.show(w, http.StatusOK, "devicedone", v, policy{})
}

// Setup shows the form that creates the first administrator. It posts username, password, token and
// step.
func (p *Pages) Setup(w http.ResponseWriter, status int, v Setup) {
	p.show(w, status, "setup", v, policy{script: true, connect: true})
}

// SetupDone shows that the first administrator exists, and the next steps.
func (p *Pages) SetupDone(w http.ResponseWriter, v SetupDone) {
	p.show(w, http.StatusOK, "setupdone", v, policy{})
}

// Home shows the start page: the signed-in user, and the MCP servers.
func (p *Pages) Home(w http.ResponseWriter, v Home) {
	p.show(w, http.StatusOK, "home", v, policy{leaves: true, script: true})
}

// SignedOut shows that the session has ended.
func (p *Pages) SignedOut(w http.ResponseWriter, v SignedOut) {
	p.show(w, http.StatusOK, "signedout", v, policy{})
}

// show renders into memory first, so that a page is sent completely or not at all.
func (p *Pages) show(w http.ResponseWriter, status int, page string, view any, rules policy) {
	body, ok := p.bodies.Get().(*bytes.Buffer)
	if !ok {
		body = new(bytes.Buffer)
	}
	body.Reset()
	defer p.bodies.Put(body)
	t, err := p.pages[page]()
	if err == nil {
		err = t.Execute(body, view)
	}
	if err == nil {
		err = t.ExecuteTemplate(body, "foot", p.foot())
	}
	if err != nil {
		// The templates are tested with every view, so this is a bug in the program. The user must
		// not see its details.
		rules.set(w.Header())
		http.Error(w, "The page could not be shown. Please try again.", http.StatusInternalServerError)
		return
	}
	rules.set(w.Header())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Language", p.language.Tag)
	w.Header().Add("Vary", "Accept-Language")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the client has disconnected
}
