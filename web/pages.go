package web

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-authd/mcp-authd/web/text"
)

// Config is what the pages of one server have in common.
type Config struct {
	// ProductName is how the server calls itself to people; default "mcp-authd".
	ProductName string
	// Prefix is the path of the issuer without a closing slash ("" or "/auth"): the
	// pages link to Prefix + "/assets/..." and Prefix + "/".
	Prefix string
	// Branding is how the pages look and speak.
	Branding Branding
}

// Pages renders every page in one language; For has those in the others. It is safe for
// concurrent use.
type Pages struct {
	*shared
	language *text.Language
	pages    map[string]func() (*template.Template, error)
	back     string // where a person goes on who chooses another language; "": no choice is offered
}

// shared is what the pages of all languages have in common.
type shared struct {
	assets    assets
	texts     *text.Catalogues
	languages map[*text.Language]func() *Pages
	parts     map[string]string // of the layout, as the branding has them
	words     map[string]string // that are the same on every page
	choices   []LanguageChoice
	choose    string    // where the choice of a language is posted
	bodies    sync.Pool // of *bytes.Buffer
}

// New parses the templates and prepares the assets, and returns the English pages. An error means
// that a template or a text of ours is broken or that the prefix is not a path.
func New(c Config) (*Pages, error) {
	if c.ProductName == "" {
		c.ProductName = "mcp-authd"
	}
	if c.Prefix != "" && (!strings.HasPrefix(c.Prefix, "/") || strings.HasSuffix(c.Prefix, "/")) {
		return nil, fmt.Errorf("web: prefix %q must begin with a slash and not end with one", c.Prefix)
	}
	all := &shared{languages: make(map[*text.Language]func() *Pages)}
	var err error
	if all.assets, err = loadAssets(c.Prefix); err != nil {
		return nil, err
	}
	if all.texts, err = text.Load(c.Branding.Texts); err != nil {
		return nil, fmt.Errorf("web: %w", err)
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

// For has the pages in the language for a person who gives these wishes, the first before the
// second: each a list as Accept-Language has it or ui_locales, or "".
func (p *Pages) For(wishes ...string) *Pages {
	l := p.texts.Match(wishes...)
	if l == p.language {
		return p
	}
	return p.languages[l]()
}

// Offers reports whether there are pages in the language with a tag.
func (p *Pages) Offers(tag string) bool { return slices.Contains(p.Languages(), tag) }

// Speaks returns the language for a list of wishes, and whether one of them is met.
func (p *Pages) Speaks(wishes string) (tag string, ok bool) {
	l, ok := p.texts.Find(wishes)
	if !ok {
		return "", false
	}
	return l.Tag, true
}

// Language is the tag of the language of these pages (BCP 47).
func (p *Pages) Language() string { return p.language.Tag }

// Languages are the tags of all languages that there are pages in.
func (p *Pages) Languages() (tags []string) {
	for _, l := range p.texts.Languages() {
		tags = append(tags, l.Tag)
	}
	return tags
}

// Texts are the words of the pages, in every language.
func (p *Pages) Texts() *text.Catalogues { return p.texts }

// Assets serves GET and HEAD of "/assets/<name>.<hash>.<ext>". The names change with
// the content, so browsers keep them. Strip Config.Prefix before.
func (p *Pages) Assets() http.Handler { return p.assets }

// Icon is where the icon of this server is.
func (p *Pages) Icon() string { return p.assets.prefix + p.assets.paths["icon.svg"] }

// Login shows the sign-in page. Its form posts username, password and step.
func (p *Pages) Login(w http.ResponseWriter, status int, v Login) {
	p.show(w, status, "login", v,
		policy{leaves: true, keepOpener: true, script: v.Passkey != nil})
}

// Consent shows who asks for what. Its form posts decision (approve or deny) and step. The style
// sheet keeps the decision on the first screen with up to five scopes (PE-11).
func (p *Pages) Consent(w http.ResponseWriter, status int, v Consent) {
	p.show(w, status, "consent", v, policy{leaves: true, keepOpener: true, script: true})
}

// Confirm names the account that an application gets. Its form posts decision (approve, deny or another)
// and step.
func (p *Pages) Confirm(w http.ResponseWriter, v Confirm) {
	p.show(w, http.StatusOK, "confirm", v, policy{leaves: true, keepOpener: true, script: true})
}

// Chooser asks with which account a person goes on. Its forms post step.
func (p *Pages) Chooser(w http.ResponseWriter, v Chooser) {
	p.show(w, http.StatusOK, "chooser", v, policy{leaves: true, keepOpener: true})
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
	p.show(w, status, "providerconsent", v, policy{leaves: true, keepOpener: true, script: true})
}

// Failed shows why a sign-in at a provider did not work out, and what to do. It stays until
// the person goes on: the number on it is what the operator asks for.
func (p *Pages) Failed(w http.ResponseWriter, status int, v Failed) {
	p.show(w, status, "failed", v, policy{keepOpener: true})
}

// Connect shows which MCP server wants what of the person's account at a provider. Its
// form posts decision (approve or deny) and step.
func (p *Pages) Connect(w http.ResponseWriter, v Connect) {
	p.show(w, http.StatusOK, "connect", v, policy{leaves: true, keepOpener: true, script: true})
}

// Claim asks whether an account at a provider is the person's. Its form posts decision
// (approve or deny) and step.
func (p *Pages) Claim(w http.ResponseWriter, v Claim) {
	p.show(w, http.StatusOK, "claim", v, policy{leaves: true, keepOpener: true, script: true})
}

// Connected shows what has become of that.
func (p *Pages) Connected(w http.ResponseWriter, v Connected) {
	p.show(w, http.StatusOK, "connected", v, policy{keepOpener: true})
}

// Answer shows an authorization response, for the person to carry to another computer.
func (p *Pages) Answer(w http.ResponseWriter, v Answer) {
	p.show(w, http.StatusOK, "answer", v, policy{})
}

// DeviceCode shows the form in which a person types the code that a device shows them. It gets
// user_code.
func (p *Pages) DeviceCode(w http.ResponseWriter, status int, v DeviceCode) {
	p.show(w, status, "devicecode", v, policy{})
}

// Device shows which device asks for what. Its form posts decision (approve or deny) and step.
func (p *Pages) Device(w http.ResponseWriter, v Device) {
	p.show(w, http.StatusOK, "device", v, policy{script: true})
}

// DeviceDone shows what has become of that.
func (p *Pages) DeviceDone(w http.ResponseWriter, v DeviceDone) {
	p.show(w, http.StatusOK, "devicedone", v, policy{})
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
	p.show(w, http.StatusOK, "home", v, policy{leaves: true, script: true})
}

// SignedOut shows that the session has ended.
func (p *Pages) SignedOut(w http.ResponseWriter, v SignedOut) {
	p.show(w, http.StatusOK, "signedout", v, policy{})
}

// show renders to memory first: a page is sent whole or not at all.
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
		// The templates are tested with every view; this is a defect of ours, and the
		// person must not be shown its innards.
		rules.set(w.Header())
		http.Error(w, "The page could not be shown. Please try again.", http.StatusInternalServerError)
		return
	}
	rules.set(w.Header())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Language", p.language.Tag)
	w.Header().Add("Vary", "Accept-Language")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the person has gone
}
