package authserver

import (
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/clearance"
)

// mounts puts pages at their paths, under the issuer's own host only.
type mounts struct {
	sameSite *http.CrossOriginProtection
	handle   func(path string, h http.Handler, methods ...string)
}

// page mounts a page that is only read.
func (m mounts) page(path string, page http.HandlerFunc) {
	m.handle(path, page, http.MethodGet, http.MethodHead)
}

// form mounts what a form is posted to.
func (m mounts) form(path string, form http.HandlerFunc) {
	m.handle(path, m.sameSite.Handler(form), http.MethodPost)
}

// both mounts a page with its form at the same address.
func (m mounts) both(path string, page, form http.HandlerFunc) {
	m.handle(path, m.sameSite.Handler(byMethod(page, form)), http.MethodGet, http.MethodHead, http.MethodPost)
}

// register mounts the pages.
func (p *pages) register(handle func(string, http.Handler, ...string), console bool) {
	// Posts from another site are refused by the browser's own word (Sec-Fetch-Site, or Origin where
	// there is none), and every form carries a sealed step that is bound to the browser (AS-47). Each
	// of the two must do without the other.
	sameSite := http.NewCrossOriginProtection()
	sameSite.SetDenyHandler(http.HandlerFunc(p.errors.crossOrigin))
	m := mounts{sameSite, func(path string, h http.Handler, methods ...string) {
		handle(path, p.ownHost(h), methods...)
	}}
	p.registerSignIn(m)
	p.registerAccount(m)
	if p.remote != nil {
		p.registerRemote(m)
	}
	if p.provider != nil {
		p.registerProviders(m)
	}
	if p.console != nil && console {
		h := sameSite.Handler(p.console)
		for _, path := range []string{pageConsole, pageConsole + "/"} {
			m.handle(p.paths.prefix+path, h, http.MethodGet, http.MethodHead, http.MethodPost)
		}
	}
	if p.backchannel != nil {
		handle(p.paths.callback+"{provider}/logout", p.backchannel, http.MethodPost)
	}
	// Under every host: the page that refuses one has a style, too.
	handle(p.paths.prefix+"/assets/", http.StripPrefix(p.paths.prefix, p.web.pages.Assets()), http.MethodGet,
		http.MethodHead)
}

// registerSignIn mounts how people get in, and what they approve.
func (p *pages) registerSignIn(m mounts) {
	// GET alone (OAuth 2.1 §3.1, AS-37): a HEAD could issue a code
	m.handle(p.paths.authorize, http.HandlerFunc(p.authorize.authorize), http.MethodGet)
	m.form(p.paths.consent, p.authorize.consent)
	m.form(p.paths.choose, p.login.choose)
	m.form(p.paths.paused, p.paused.decide)
	m.both(p.paths.login, p.login.page, p.login.login)
	m.form(p.paths.passkey, p.login.passkey)
	m.form(p.paths.recovery, p.login.recovery)
	m.both(p.paths.second, p.login.more, p.login.second)
	m.both(p.paths.prove, p.prove.page, p.prove.prove)
	m.both(p.paths.forgotten, p.links.forgotten, p.links.send)
	m.both(p.paths.link+"{token}", p.links.page, p.links.use)
	m.both(p.paths.setup, p.setup.setup, p.setup.setup)
	m.form(p.paths.setup+"/check", p.setup.check)
	m.both(p.paths.device, p.device.page, p.device.decide)
	m.both(p.paths.prefix+clearance.Path+"{id}", p.clearance.page, p.clearance.decide)
	m.form(p.paths.logout, p.login.logout)
	m.form(p.paths.language, p.language.choose)
	m.page(p.paths.home+"{$}", p.home.home)
}

// registerAccount mounts what people see and change once they are in.
func (p *pages) registerAccount(m mounts) {
	m.page(p.paths.account, p.account.page)
	m.form(p.paths.connections, p.account.connections)
	m.page(p.paths.prefix+pageHelpers, p.account.helpers)
	m.form(p.paths.signIns, p.account.signIns)
	m.form(p.paths.stop, p.account.stop)
	m.both(p.paths.notices, p.notices.page, p.notices.act)
	m.both(p.paths.prefix+pageWays, p.ways.list, p.account.changeWay)
	m.both(p.paths.prefix+pagePasskey, p.ways.passkey, p.ways.addPasskey)
	m.both(p.paths.prefix+pageApp, p.ways.app, p.ways.addApp)
	m.both(p.paths.prefix+pageRecovery, p.ways.recovery, p.ways.newCodes)
	m.both(p.paths.prefix+pagePassword, p.ways.password, p.ways.setPassword)
	m.both(p.paths.prefix+pageKeys, p.keys.page, p.keys.make)
}

// registerRemote mounts sign-ins from other devices.
func (p *pages) registerRemote(m mounts) {
	remote := m.sameSite.Handler(byMethod(p.remote.wait, p.remote.begin))
	m.handle(p.paths.remote, remote, http.MethodGet, http.MethodPost) // a HEAD could begin a session
	m.handle(p.paths.remote+"/state", http.HandlerFunc(p.remote.state), http.MethodGet)
	m.form(p.paths.remoteDecision, p.remote.decide)
}

// registerProviders mounts sign-ins at providers.
func (p *pages) registerProviders(m mounts) {
	m.form(p.paths.depart, p.provider.depart)
	m.form(p.paths.disconnect, p.account.disconnect)
	m.form(p.paths.claim, p.provider.claim)
	link := m.sameSite.Handler(http.HandlerFunc(p.provider.connect))
	m.handle(p.paths.connect+"{request}", link, http.MethodGet, http.MethodPost)
	// Providers send the browser here, some by a form: what guards this path is the state.
	m.handle(p.paths.callback+"{provider}", http.HandlerFunc(p.provider.callback), http.MethodGet, http.MethodPost)
}
