package authserver

import (
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/account"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
)

// pages are all that browsers get: authorization requests, and the pages and forms of people.
type pages struct {
	issuer    string
	paths     paths
	web       *spokenPages
	errors    *errorPages
	authorize *authorizePages
	login     *loginPages
	home      *homePages
	device    *devicePages
	remote    *remotePages // nil: browsers are not signed in from other devices
	account   *accountPages
	language  *languagePages
	setup     *setupPages
	links     *linkPages
	prove     *provePages
	ways      *wayPages
	keys      *keyPages
	notices   *noticePages
	provider  *providerPages // nil: people sign in with a password only
	// backchannel answers logout tokens of providers; nil: not offered.
	backchannel http.Handler
}

// newPages puts the flow together, and the pages on it.
func newPages(s *Server) *pages {
	c := s.cfg
	browsers := &entry.Browsers{
		Store: c.Store, Bindings: s.bindings, Notices: c.Bindings, Audit: c.Audit, Now: c.Now,
	}
	listed := &flow.SignInOptions{Password: !c.NoLocalLogin, At: c.Delegation, Default: c.DefaultProvider}
	f := &flow.Flow{
		Clients:  s.clients,
		Catalog:  s.catalog,
		Browsers: browsers,
		Options:  listed,
		Factors:  s.ways,
		Protocol: &protocol{s.grants.shell, s.grants.approvals},
		Bindings: s.bindings,
		Audit:    c.Audit,
		Now:      c.Now,
	}
	start := &flow.StartPage{Browsers: browsers, Catalog: s.catalog}
	signIns := flow.NewProviderSignIns(f, c.Delegation, s.links, s.notifier)
	signIn := &entry.Entry{
		Store:    c.Store,
		Users:    s.users,
		Ways:     s.ways,
		Notices:  s.notifier,
		Clients:  s.clients,
		Browsers: browsers,
		Audit:    c.Audit,
		Now:      c.Now,
	}
	forms := &pageForms{sessions: s.sessions, errors: s.errors, proxies: c.TrustedProxies}
	steps := &steps{
		forms:  forms,
		errors: s.errors,
		web:    s.errors.web,
		views: &views{
			issuer: c.Issuer, paths: s.paths, flow: f, clients: s.clients, mail: s.users.HasMail(),
			codeTTL: c.Tokens.CodeTTL, noOtherDevice: c.SignIn.NoOtherDevice,
		},
		passwords: newPasswords(c.Config),
		ways:      s.ways,
		audit:     c.Audit,
	}
	devices := &flow.Devices{Flow: f, Requests: s.devices, Approvals: s.grants.approvals}
	prove := &provePages{signIn, forms, steps}
	enrol := &entry.Enrolment{Store: c.Store, Users: s.users, Ways: s.ways, Notices: s.notifier, Now: c.Now}
	ways := &wayPages{
		browsers: browsers,
		enrol:    enrol,
		prove:    prove,
		forms:    forms,
		steps:    steps,
	}
	notices := &noticePages{browsers, s.notifier, s.users, prove, s.paths, s.errors.web, forms}
	accounts := &account.Page{
		Store:      c.Store,
		Browsers:   browsers,
		Catalog:    s.catalog,
		Identities: c.Accounts,
		Factors:    s.ways,
		Notices:    s.notifier,
		Audit:      c.Audit,
		Now:        c.Now,
	}
	keys := &keyPages{s.newKeyMaker(browsers), prove, forms, steps}
	remote := s.newRemote(browsers, forms, steps)
	p := &pages{
		issuer:      c.Issuer,
		paths:       s.paths,
		web:         s.errors.web,
		errors:      s.errors,
		authorize:   &authorizePages{f, signIns, forms, steps},
		login:       &loginPages{f, start, signIn, c.NoLocalLogin, forms, steps},
		notices:     notices,
		language:    &languagePages{browsers, forms, s.errors.web},
		links:       &linkPages{s.users, s.ways, c.NoLocalLogin, c.Issuer, s.paths, s.errors.web, forms},
		home:        &homePages{start, forms, steps},
		account:     &accountPages{accounts, ways, keys, notices, forms, steps},
		keys:        keys,
		setup:       &setupPages{s.users, c.NoLocalLogin, c.Issuer, s.paths.setup, s.errors.web, forms},
		device:      &devicePages{devices, remote, forms, steps},
		prove:       prove,
		ways:        ways,
		remote:      remote,
		backchannel: c.BackchannelLogout,
	}
	if c.Delegation != nil {
		p.provider = &providerPages{f, signIns, forms, steps}
	}
	return p
}

func (s *Server) newKeyMaker(browsers *entry.Browsers) *account.KeyMaker {
	c := s.cfg
	return &account.KeyMaker{
		Store:    c.Store,
		Browsers: browsers,
		Catalog:  s.catalog,
		Bindings: s.bindings,
		Factors:  s.ways,
		Notices:  s.notifier,
		Audit:    c.Audit,
		Off:      c.ProgramKeys.Off,
		MaxTTL:   c.ProgramKeys.MaxTTL,
		Now:      c.Now,
	}
}

// register mounts the pages.
func (p *pages) register(handle func(string, http.Handler, ...string)) {
	// Posts from another site are refused by the browser's own word (Sec-Fetch-Site,
	// Origin), and every form carries a sealed step that is bound to the browser (AS-47).
	sameSite := http.NewCrossOriginProtection()
	sameSite.SetDenyHandler(http.HandlerFunc(p.errors.crossOrigin))
	register := handle
	handle = func(path string, h http.Handler, methods ...string) { register(path, p.ownHost(h), methods...) }
	post := func(path string, h http.HandlerFunc) { handle(path, sameSite.Handler(h), http.MethodPost) }

	// GET alone (OAuth 2.1 §3.1, AS-37): a HEAD could issue a code
	handle(p.paths.authorize, http.HandlerFunc(p.authorize.authorize), http.MethodGet)
	signIn := sameSite.Handler(byMethod(p.login.page, p.login.login))
	handle(p.paths.login, signIn, http.MethodGet, http.MethodHead, http.MethodPost)
	post(p.paths.passkey, p.login.passkey)
	post(p.paths.recovery, p.login.recovery)
	both := func(path string, page, form http.HandlerFunc) {
		handle(path, sameSite.Handler(byMethod(page, form)), http.MethodGet, http.MethodHead, http.MethodPost)
	}
	both(p.paths.second, p.login.more, p.login.second)
	both(p.paths.prove, p.prove.page, p.prove.prove)
	both(p.paths.prefix+pagePasskey, p.ways.passkey, p.ways.addPasskey)
	both(p.paths.prefix+pageApp, p.ways.app, p.ways.addApp)
	both(p.paths.prefix+pageRecovery, p.ways.recovery, p.ways.newCodes)
	both(p.paths.prefix+pagePassword, p.ways.password, p.ways.setPassword)
	both(p.paths.prefix+pageWays, p.ways.list, p.account.changeWay)
	both(p.paths.prefix+pageKeys, p.keys.page, p.keys.make)
	post(p.paths.consent, p.authorize.consent)
	post(p.paths.logout, p.login.logout)
	post(p.paths.language, p.language.choose)
	device := sameSite.Handler(byMethod(p.device.page, p.device.decide))
	handle(p.paths.device, device, http.MethodGet, http.MethodHead, http.MethodPost)
	if p.remote != nil {
		remote := sameSite.Handler(byMethod(p.remote.wait, p.remote.begin))
		handle(p.paths.remote, remote, http.MethodGet, http.MethodPost) // a HEAD could begin a session
		handle(p.paths.remote+"/state", http.HandlerFunc(p.remote.state), http.MethodGet)
		post(p.paths.remoteDecision, p.remote.decide)
	}
	post(p.paths.choose, p.login.choose)
	setup := sameSite.Handler(http.HandlerFunc(p.setup.setup))
	link := sameSite.Handler(byMethod(p.links.page, p.links.use))
	handle(p.paths.link+"{token}", link, http.MethodGet, http.MethodHead, http.MethodPost)
	notices := sameSite.Handler(byMethod(p.notices.page, p.notices.act))
	handle(p.paths.notices, notices, http.MethodGet, http.MethodHead, http.MethodPost)
	forgotten := sameSite.Handler(byMethod(p.links.forgotten, p.links.send))
	handle(p.paths.forgotten, forgotten, http.MethodGet, http.MethodHead, http.MethodPost)
	handle(p.paths.setup, setup, http.MethodGet, http.MethodHead, http.MethodPost)
	post(p.paths.setup+"/check", p.setup.check)
	handle(p.paths.home+"{$}", http.HandlerFunc(p.home.home), http.MethodGet, http.MethodHead)
	handle(p.paths.account, http.HandlerFunc(p.account.page), http.MethodGet, http.MethodHead)
	post(p.paths.connections, p.account.connections)
	post(p.paths.signIns, p.account.signIns)
	post(p.paths.stop, p.account.stop)
	if p.provider != nil {
		post(p.paths.depart, p.provider.depart)
		post(p.paths.disconnect, p.account.disconnect)
		post(p.paths.claim, p.provider.claim)
		link := sameSite.Handler(http.HandlerFunc(p.provider.connect))
		handle(p.paths.connect+"{request}", link, http.MethodGet, http.MethodPost)
		// Providers send the browser here, some by a form: what guards this path is the state.
		handle(p.paths.callback+"{provider}", http.HandlerFunc(p.provider.callback), http.MethodGet, http.MethodPost)
	}
	if p.backchannel != nil {
		register(p.paths.callback+"{provider}/logout", p.backchannel, http.MethodPost)
	}
	// Under every host: the page that refuses one has a style, too.
	register(p.paths.prefix+"/assets/", http.StripPrefix(p.paths.prefix, p.web.pages.Assets()), http.MethodGet,
		http.MethodHead)
}
