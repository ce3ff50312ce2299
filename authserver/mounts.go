package authserver

import (
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/clearance"
)

// mounts registers pages at their paths, only under the issuer's own host.
type mounts struct {
	sameSite *http.CrossOriginProtection
	handle   func(path string, h http.Handler, methods ...string)
}

// page registers a read-only page.
func (m mounts) page(path string, page http.HandlerFunc) {
	m.handle(path, page, http.MethodGet, http.MethodHead)
}

// form registers the target of a form.
func (m mounts) form(path string, form http.HandlerFunc) {
	m.handle(path, m.sameSite.Handler(form), http.MethodPost)
}

// both registers a page with its form at the same address.
func (m mounts) both(path string, page, form http.HandlerFunc) {
	m.handle(path, m.sameSite.Handler(byMethod(page, form)), http.MethodGet, http.MethodHead, http.MethodPost)
}

// register registers the pages.
func (p *pageHandlers) register(handle func(string, http.Handler, ...string), console bool) {
	// The browser's Sec-Fetch-Site header, or Origin without it, lets this server refuse posts from
	// another site. Every form also contains a sealed step that is bound to the browser (AS-47).
	// Each of the two is sufficient without the other.
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
	// Under every host, because the page about an unknown host needs its style.
	handle(p.paths.prefix+"/assets/", http.StripPrefix(p.paths.prefix, p.web.pages.Assets()), http.MethodGet,
		http.MethodHead)
}

// registerSignIn registers the pages for sign-in and consent.
func (p *pageHandlers) registerSignIn(m mounts) {
	// only GET (OAuth 2.1 §3.1, AS-37): a HEAD could issue a code
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

// registerAccount registers the pages of a signed-in user.
func (p *pageHandlers) registerAccount(m mounts) {
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

// registerRemote registers sign-ins from other devices.
func (p *pageHandlers) registerRemote(m mounts) {
	remote := m.sameSite.Handler(byMethod(p.remote.wait, p.remote.begin))
	m.handle(p.paths.remote, remote, http.MethodGet, http.MethodPost) // a HEAD could begin a session
	m.handle(p.paths.remote+"/state", http.HandlerFunc(p.remote.state), http.MethodGet)
	m.form(p.paths.remoteDecision, p.remote.decide)
}

// registerProviders registers sign-ins at providers.
func (p *pageHandlers) registerProviders(m mounts) {
	m.form(p.paths.depart, p.provider.depart)
	m.form(p.paths.disconnect, p.account.disconnect)
	m.form(p.paths.claim, p.provider.claim)
	link := m.sameSite.Handler(http.HandlerFunc(p.provider.connect))
	m.handle(p.paths.connect+"{request}", link, http.MethodGet, http.MethodPost)
	// Providers redirect the browser here, some with a form post: the state protects this path.
	m.handle(p.paths.callback+"{provider}", http.HandlerFunc(p.provider.callback), http.MethodGet, http.MethodPost)
}
