package storage

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
)

// Store combines all roles: a backend implements it, and cmd wires it. A consumer declares only the
// roles it uses.
type Store interface {
	Clients
	Applications
	Users
	Accounts
	Locales
	Roles
	Groups
	ProviderGroups
	AccessRules
	Setup
	Sessions
	UserSessions
	Approvals
	Devices
	RemoteSignIns
	PushedRequests
	Clearances
	Administration
	Audiences
	Redemptions
	Revocations
	Cuts
	Lookups
	Grants
	Connections
	Pauses
	ProgramKeys
	AssertionGrants
	TrustLinks
	AssertedEnds
	LastCalls
	Attempts
	Nodes
	Stops
	Servers
	Tasks
	TrustEntries
	Keys
	KeyCustody
	SharedKeys
	CertificateFiles
	Once
	Proofs
	Processes
	Failures
	Allowances
	Events
	Notices
	OneTimeLinks
	LinkStops
	Housekeeping
	Hooked
	Clock
	Departures
	Arrivals
	Identities
	Upstreams
	UpstreamEnds
	UpstreamCustody
	Handbacks
	Ways
	WayEnds
	RecoveryCodes
	WayCustody
	Outbox
	Audits
}

// Hook is called once for each call of a verb. verb is the name of the method, such as
// "RedeemCode", and run carries it out. A hook may call run any number of times and returns the
// error of the verb.
type Hook func(ctx context.Context, verb string, run func() error) error

// Hooked measures verbs and injects failures into them.
type Hooked interface {
	// Hook adds a hook outside the present ones, for all methods of the store that return an error
	// except Close. remove removes it.
	Hook(h Hook) (remove func())
}

// Timed returns a hook that calls ended after each verb, with its duration by the clock now and its
// error.
func Timed(
	now func() time.Time,
	ended func(ctx context.Context, verb string, began time.Time, took time.Duration, err error),
) Hook {
	return func(ctx context.Context, verb string, run func() error) error {
		began := now()
		err := run()
		ended(ctx, verb, began, now().Sub(began), err)
		return err
	}
}

// Hooks implements Hooked for a backend, which embeds it. The zero value has no hooks.
type Hooks struct {
	mu  sync.Mutex // guards all
	all []*Hook    // the innermost first

	whole atomic.Pointer[Hook] // all hooks in one, or nil
}

// Hook implements Hooked.
func (h *Hooks) Hook(added Hook) (remove func()) {
	h.change(func(all []*Hook) []*Hook { return append(all, &added) })
	return func() {
		h.change(func(all []*Hook) []*Hook {
			return slices.DeleteFunc(all, func(one *Hook) bool { return one == &added })
		})
	}
}

func (h *Hooks) change(edit func([]*Hook) []*Hook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = edit(h.all)
	var whole *Hook
	for _, one := range h.all {
		whole = around(whole, *one)
	}
	h.whole.Store(whole)
}

func around(inner *Hook, outer Hook) *Hook {
	if inner == nil {
		return &outer
	}
	var both Hook = func(ctx context.Context, verb string, run func() error) error {
		return outer(ctx, verb, func() error { return (*inner)(ctx, verb, run) })
	}
	return &both
}

// Run passes a verb through the hooks. run receives a context made by Inside.
func (h *Hooks) Run(ctx context.Context, verb string, run func(context.Context) error) error {
	hook := h.whole.Load()
	if hook == nil || ctx.Value(insideKey{}) != nil {
		return run(ctx)
	}
	return (*hook)(ctx, verb, func() error { return run(Inside(ctx)) })
}

type insideKey struct{}

// Inside returns a context whose runs pass no hook: they are steps of a verb, or of a method that
// is not in Store.
func Inside(ctx context.Context) context.Context { return context.WithValue(ctx, insideKey{}, true) }

// Words returns the name of a verb in words, for errors: "redeem code" for "RedeemCode". It returns
// words unchanged.
func Words(verb string) string {
	var b strings.Builder
	for i, r := range verb {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
