package authserver

import (
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/account"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
)

// pages serves browsers: authorization requests, and the pages and forms of users.
type pageHandlers struct {
	issuer    string
	paths     paths
	web       *spokenPages
	errors    *errorPages
	authorize *authorizePages
	login     *loginPages
	home      *homePages
	device    *devicePages
	paused    *pausedPages
	clearance *clearancePages
	remote    *remotePages // nil: browsers cannot be signed in from other devices
	account   *accountPages
	language  *languagePages
	setup     *setupPages
	links     *linkPages
	prove     *provePages
	ways      *wayPages
	keys      *keyPages
	notices   *noticePages
	provider  *providerPages // nil: users sign in with a password only
	console   http.Handler   // nil: no console
	// backchannel serves logout tokens of providers; nil: not offered.
	backchannel http.Handler
}

// changingAccounts is the number of accounts whose changes are counted.
const changingAccounts = 10_000

// newPageHandlers assembles the flow and its pages.
func newPageHandlers(s *Server) *pageHandlers {
	c := s.cfg
	browsers := &entry.Browsers{
		Store: c.Store, Bindings: s.bindings, Notices: c.Bindings, Factors: s.ways, Audit: c.Audit, Now: c.Now,
		Changes: s.limits.Limiter("changes of an account", changingAccounts),
	}
	f := s.newFlow(browsers)
	start := &flow.StartPage{Browsers: browsers, Catalog: s.catalog}
	signIns := flow.NewProviderSignIns(f, c.Delegation, s.links, s.notifier)
	signIn := &entry.SignIns{
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
	steps := s.newSteps(f, forms)
	devices := &flow.Devices{Flow: f, Requests: s.devices, Approvals: s.grants.approvals}
	prove := &provePages{entry: signIn, forms: forms, steps: steps}
	enrol := &entry.WayChanges{
		Store:   c.Store,
		Users:   s.users,
		Ways:    s.ways,
		Notices: s.notifier,
		Now:     c.Now,
	}
	ways := &wayPages{
		browsers: browsers,
		enrol:    enrol,
		prove:    prove,
		forms:    forms,
		steps:    steps,
	}
	notices := &noticePages{
		browsers: browsers,
		notifier: s.notifier,
		users:    s.users,
		prove:    prove,
		paths:    s.paths,
		web:      s.errors.web,
		forms:    forms,
	}
	accounts := &account.Page{
		Store:      c.Store,
		Browsers:   browsers,
		Catalog:    s.catalog,
		Identities: c.Accounts,
		Issuers:    c.Trust,
		Notices:    s.notifier,
		Audit:      c.Audit,
		Now:        c.Now,
	}
	keys := &keyPages{maker: s.newKeyMaker(browsers), prove: prove, forms: forms, steps: steps}
	remote := s.newRemote(browsers, forms, steps)
	clearances := &clearancePages{
		flow:     f,
		desk:     s.grants.clearances.Desk,
		browsers: browsers,
		catalog:  s.catalog,
		forms:    forms,
		steps:    steps,
	}
	steps.clearances = clearances
	p := &pageHandlers{
		issuer: c.Issuer,
		paths:  s.paths,
		web:    s.errors.web,
		errors: s.errors,
		authorize: &authorizePages{
			flow:    f,
			signIns: signIns,
			pushes:  flow.NewPushes(f, c.Store, s.ring),
			forms:   forms,
			steps:   steps,
		},
		login: &loginPages{
			flow:  f,
			start: start,
			entry: signIn,
			off:   c.NoLocalLogin,
			forms: forms,
			steps: steps,
		},
		notices:  notices,
		language: &languagePages{browsers: browsers, forms: forms, web: s.errors.web},
		links: &linkPages{
			users:    s.users,
			ways:     s.ways,
			browsers: browsers,
			off:      c.NoLocalLogin,
			issuer:   c.Issuer,
			paths:    s.paths,
			web:      s.errors.web,
			forms:    forms,
		},
		home: &homePages{start: start, forms: forms, steps: steps},
		account: &accountPages{
			accounts: accounts,
			ways:     ways,
			keys:     keys,
			notices:  notices,
			waiting:  clearances,
			forms:    forms,
			steps:    steps,
		},
		keys: keys,
		setup: &setupPages{
			users:  s.users,
			off:    c.NoLocalLogin,
			issuer: c.Issuer,
			path:   s.paths.setup,
			web:    s.errors.web,
			forms:  forms,

			passkeys: s.ways.Site().Offered(),
			second:   c.SignIn.AdminsSecondFactor == "required",
			console:  c.Console != nil && !c.ConsoleApart,
		},
		device: &devicePages{devices: devices, remote: remote, forms: forms, steps: steps},
		paused: &pausedPages{
			flow: f, devices: devices, accounts: accounts, prove: prove, forms: forms, steps: steps,
		},
		clearance:   clearances,
		prove:       prove,
		ways:        ways,
		remote:      remote,
		backchannel: c.BackchannelLogout,
	}
	if c.Console != nil {
		if !c.ConsoleApart {
			p.account.console = s.paths.prefix + pageConsole
		}
		p.console = c.Console(&Visitors{
			browsers: browsers, factors: s.ways, forms: forms, steps: steps,
		})
	}
	if c.Delegation != nil {
		p.provider = &providerPages{flow: f, signIns: signIns, forms: forms, steps: steps}
	}
	return p
}

func (s *Server) newFlow(browsers *entry.Browsers) *flow.Flow {
	c := s.cfg
	listed := &flow.SignInOptions{Password: !c.NoLocalLogin, At: c.Delegation, Default: c.DefaultProvider}
	return &flow.Flow{
		Clients:  s.clients,
		Catalog:  s.catalog,
		Browsers: browsers,
		Options:  listed,
		Factors:  s.ways,
		Protocol: &protocol{s.grants.shell, s.grants.approvals},
		Desk:     s.grants.clearances.Desk,
		Pauses:   c.Store,
		Bindings: s.bindings,
		Identity: grant.IdentityResource(c.Issuer),
		ACRs:     s.ways.ACRs(),
		Audit:    c.Audit,
		Limits:   s.limits,
		Now:      c.Now,
	}
}

func (s *Server) newSteps(f *flow.Flow, forms *pageForms) *steps {
	c := s.cfg
	return &steps{
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
		accounts:  &sessionAccounts{store: c.Store, identities: c.Accounts},
	}
}

func (s *Server) newKeyMaker(browsers *entry.Browsers) *account.KeyMaker {
	c := s.cfg
	return &account.KeyMaker{
		Store:    c.Store,
		Browsers: browsers,
		Catalog:  s.catalog,
		Bindings: s.bindings,
		Notices:  s.notifier,
		Audit:    c.Audit,
		Off:      c.ProgramKeys.Off,
		MaxTTL:   c.ProgramKeys.MaxTTL,
		Now:      c.Now,
	}
}
