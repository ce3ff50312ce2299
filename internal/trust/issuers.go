package trust

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// entriesFresh is how long the stored entries are cached. Disabling an entry immediately ends
// everything that depends on it. The delay affects only new grants.
const entriesFresh = 2 * time.Second

// Options configures Issuers.
type Options struct {
	Issuer string // this server's issuer identifier, for aud; the token endpoint is Issuer + "/token"
	// Entries are the entries of the configuration. They precede the entries of the store.
	Entries []storage.TrustEntry
	Store   Lister // nil: only the configured entries
	Now     func() time.Time
	Log     *slog.Logger
}

// Lister reads the entries of the store; storage.TrustEntries has the contract.
type Lister interface {
	ListTrust(ctx context.Context) ([]storage.TrustEntry, error)
}

// Issuers holds the trusted issuers.
type Issuers struct {
	o       Options
	flights singleflight.Group

	mu      sync.Mutex // guards the fields below
	current []*entry
	stored  []storage.TrustEntry // source of current
	readAt  time.Time
	keys    map[source]*keySet
	noted   map[string]string // logged reasons of unusable entries, by ID
}

// New returns the trusted issuers. The error names an invalid entry of the configuration.
func New(o Options) (*Issuers, error) {
	if o.Issuer == "" || o.Now == nil || o.Log == nil {
		return nil, errors.New("trust: Issuer, Now and Log are required")
	}
	i := &Issuers{o: o, keys: map[source]*keySet{}, noted: map[string]string{}}
	entries, broken := assemble(o.Issuer, o.Entries, nil)
	for _, b := range broken {
		return nil, fmt.Errorf("trust %q: %w", b.id, b.err)
	}
	if o.Store == nil {
		i.use(entries)
	}
	return i, nil
}

// Verify returns the content of an assertion if it is accepted. Otherwise it returns a *Refusal
// with the reason. Any other error comes from the store or the context.
func (i *Issuers) Verify(ctx context.Context, raw string) (Assertion, error) {
	t, err := parse(raw)
	if err != nil {
		return Assertion{}, badForm(err)
	}
	entries, err := i.entries(ctx)
	if err != nil {
		return Assertion{}, err
	}
	worst := errIssuer
	for _, e := range entries {
		if iss, _ := t.text("iss"); iss != e.Issuer {
			continue
		}
		out, refused := i.against(ctx, t, e)
		if refused == nil {
			return out, nil
		}
		if worst.Entry == "" || further(refused) > further(worst) {
			worst = refused
		}
	}
	if err := ctx.Err(); err != nil {
		return Assertion{}, err
	}
	return Assertion{}, worst
}

func badForm(err error) *Refusal {
	why := map[error]string{
		errLong:      "The assertion is longer than 16 KiB.",
		errDuplicate: "The assertion has a JSON member twice.",
		errDeep:      "The assertion has too many values, or nests them too deeply.",
		errAlgorithm: "The assertion is not signed by an asymmetric algorithm that is accepted here.",
	}[err]
	return refuse(RuleForm, cmp.Or(why, "The assertion is not a signed JWT.")).because(err)
}

// against checks an assertion against one entry.
func (i *Issuers) against(ctx context.Context, t *token, e *entry) (Assertion, *Refusal) {
	x := i.examination(ctx, t, e)
	if refused := x.examine(); refused != nil {
		return Assertion{}, refused
	}
	return *x.out, nil
}

func (i *Issuers) examination(ctx context.Context, t *token, e *entry) *examination {
	return &examination{
		ctx:   ctx,
		now:   i.o.Now(),
		us:    audiences{issuer: i.o.Issuer, token: i.o.Issuer + "/token"},
		entry: e,
		keys:  i.keySet(e.keys),
		token: t,
		out:   &Assertion{},
	}
}

// Offers reports whether ID-JAGs and workload assertions are accepted at all (AS-180).
func (i *Issuers) Offers(ctx context.Context) (enterprise, workload bool, err error) {
	entries, err := i.entries(ctx)
	for _, e := range entries {
		enabled := e.DisabledAt.IsZero()
		enterprise = enterprise || enabled && e.Kind == Enterprise
		workload = workload || enabled && e.Kind == Workload
	}
	return enterprise, workload, err
}

// IssuerOf returns the issuer of an entry, or "" for an unknown entry.
func (i *Issuers) IssuerOf(ctx context.Context, entryID string) (string, error) {
	entries, err := i.entries(ctx)
	for _, e := range entries {
		if e.ID == entryID {
			return e.Issuer, err
		}
	}
	return "", err
}

// entries returns the current entries, cached for entriesFresh.
func (i *Issuers) entries(ctx context.Context) ([]*entry, error) {
	i.mu.Lock()
	current, age := i.current, i.o.Now().Sub(i.readAt)
	i.mu.Unlock()
	if i.o.Store == nil || age < entriesFresh && age >= 0 {
		return current, nil
	}
	flight := i.flights.DoChan("", func() (any, error) { return i.read(context.WithoutCancel(ctx)) })
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-flight:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.([]*entry), nil
	}
}

func (i *Issuers) read(ctx context.Context) ([]*entry, error) {
	now := i.o.Now() // before the read, so that changes during it are read next time
	stored, err := i.o.Store.ListTrust(ctx)
	if err != nil {
		return nil, err
	}
	entries, same := i.unchanged(stored)
	if !same {
		var broken []unusable
		entries, broken = assemble(i.o.Issuer, i.o.Entries, stored)
		i.note(ctx, broken)
		i.use(entries)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stored, i.readAt = stored, now
	return entries, nil
}

// unchanged returns the current entries if the store has not changed. The entries are read every
// two seconds, and compiling a thousand takes most of a second.
func (i *Issuers) unchanged(stored []storage.TrustEntry) (current []*entry, same bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.current, !i.readAt.IsZero() && reflect.DeepEqual(i.stored, stored)
}

// use makes entries the current ones, and drops the keys of issuers that are no longer among them.
func (i *Issuers) use(entries []*entry) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.current = entries
	for from := range i.keys {
		if !slices.ContainsFunc(entries, func(e *entry) bool { return e.keys == from }) {
			delete(i.keys, from)
		}
	}
}

// note logs each unusable entry once.
func (i *Issuers) note(ctx context.Context, broken []unusable) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, b := range broken {
		if why := b.err.Error(); i.noted[b.id] != why {
			i.noted[b.id] = why
			i.o.Log.WarnContext(ctx, "trust entry not used", "entry", b.id, "error", why)
		}
	}
}

func (i *Issuers) keySet(from source) *keySet {
	i.mu.Lock()
	defer i.mu.Unlock()
	k, ok := i.keys[from]
	if !ok {
		k = newKeySet(from, i.o.Now)
		i.keys[from] = k
	}
	return k
}
