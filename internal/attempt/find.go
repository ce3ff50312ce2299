package attempt

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Finder finds attempts in a store.
type Finder struct {
	Store storage.Attempts
	Now   func() time.Time
}

// Query selects attempts. Empty fields match everything.
type Query struct {
	Reference string // of any step
	Person    string // ID of the account
	Client    string // ID of the client
	// ClientName is an alternative to Client, because self-registered clients often have many IDs
	// with one name.
	ClientName string
	// Of, if set, reports which of some clients are wanted. Clients are ids of clients that it wants, by which older
	// attempts are found than those that are read without: MaxClients at most.
	Of      func(ctx context.Context, clientIDs []string) (map[string]bool, error)
	Clients []string
	Address string
	From    time.Time
	Until   time.Time
	Limit   int // the newest; 0: as many as are found
}

// MaxClients is how many clients attempts are looked for by.
const MaxClients = maxKeys

const (
	// maxRead limits the steps read in one query.
	maxRead = 4000
	// rounds limits how often the finder looks for more steps of the same attempts.
	rounds = 6
	// beside is the time before and after the found steps in which the rest of their attempts is
	// searched.
	beside = time.Hour
)

// Find returns the matching attempts, newest first (OB-02). If there are too many steps, it
// considers only the newest.
func (f Finder) Find(ctx context.Context, q Query) ([]Attempt, error) {
	out, err := f.find(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(q.Clients) > 0 && len(q.keys()) == 0 {
		newest := q
		newest.Clients = nil
		more, err := f.find(ctx, newest)
		if err != nil {
			return nil, err
		}
		out = united(out, more)
	}
	if q.ClientName != "" {
		named := q
		named.Client = ""
		more, err := f.find(ctx, named)
		if err != nil {
			return nil, err
		}
		out = united(out, more)
	}
	slices.SortStableFunc(out, func(a, b Attempt) int { return b.StartedAt.Compare(a.StartedAt) })
	if q.Limit > 0 {
		out = out[:min(len(out), q.Limit)]
	}
	return out, nil
}

// united returns a, plus the attempts of b that share no step with a.
func united(a, b []Attempt) []Attempt {
	known := map[string]bool{}
	for _, t := range a {
		for _, s := range t.all {
			known[s.Reference] = true
		}
	}
	for _, t := range b {
		if !slices.ContainsFunc(t.all, func(s Step) bool { return known[s.Reference] }) {
			a = append(a, t)
		}
	}
	return a
}

func (f Finder) find(ctx context.Context, q Query) ([]Attempt, error) {
	until := q.Until
	if until.IsZero() {
		until = f.Now().Add(beside)
	}
	by := q.by()
	r := reading{store: f.Store, steps: map[int64]Step{}}
	found, err := r.read(ctx, storage.StepQuery{Keys: by, From: q.From, Until: until})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if len(by) > 0 {
		if err := r.complete(ctx); err != nil {
			return nil, err
		}
	}
	var out []Attempt
	for _, a := range Join(r.sorted(), f.Now()) {
		if a.within(q.From, until) && a.wanted(q) {
			out = append(out, a)
		}
	}
	return q.of(ctx, out)
}

// by are the keys by which steps are read: one that each attempt has, else those of the clients, one of which it has.
func (q Query) by() (keys []string) {
	if keys = q.keys(); len(keys) > 0 {
		return keys[:1]
	}
	for _, id := range q.Clients {
		keys = append(keys, keyed(keyClient, short(id))...)
	}
	return keys
}

// of returns those of attempts whose clients are wanted.
func (q Query) of(ctx context.Context, all []Attempt) ([]Attempt, error) {
	if q.Of == nil || len(all) == 0 {
		return all, nil
	}
	ids := make([]string, 0, len(all))
	for _, a := range all {
		ids = append(ids, a.ClientID)
	}
	wanted, err := q.Of(ctx, ids)
	return slices.DeleteFunc(all, func(a Attempt) bool { return !wanted[a.ClientID] }), err
}

// wanted reports whether the attempt matches q.
func (a Attempt) wanted(q Query) bool {
	if q.ClientName != "" && strings.EqualFold(a.ClientName, q.ClientName) {
		q.Client, q.ClientName = "", ""
	}
	return (q.Client != "" || q.ClientName == "") && a.hasAll(q.keys())
}

// within reports whether the attempt overlaps the interval.
func (a Attempt) within(from, until time.Time) bool {
	return !a.EndedAt.Before(from) && a.StartedAt.Before(until)
}

// hasAll reports whether every key occurs in a step of the attempt.
func (a Attempt) hasAll(wanted []string) bool {
	for _, key := range wanted {
		if !slices.ContainsFunc(a.all, func(s Step) bool { return slices.Contains(s.all(), key) }) {
			return false
		}
	}
	return true
}

// reading holds the steps read so far, by sequence number.
type reading struct {
	store storage.Attempts
	steps map[int64]Step
}

func (r *reading) read(ctx context.Context, q storage.StepQuery) ([]storage.AttemptStep, error) {
	q.Limit = maxRead
	found, err := r.store.Steps(ctx, q)
	for _, row := range found {
		var s Step
		if err := json.Unmarshal(row.Body, &s); err != nil {
			continue // written by a later version in another format
		}
		s.seq = row.Seq
		r.steps[row.Seq] = s
	}
	return found, err
}

// complete reads the other steps of the attempts. It first uses the keys that only one attempt has.
// Then it adds nearby steps of the same clients and addresses, and repeats the first search.
func (r *reading) complete(ctx context.Context) error {
	if err := r.certain(ctx); err != nil {
		return err
	}
	if err := r.unsure(ctx); err != nil {
		return err
	}
	if err := r.more(ctx, weak, beside); err != nil {
		return err
	}
	return r.certain(ctx)
}

// certain reads steps of the same attempts until no more are found.
func (r *reading) certain(ctx context.Context) error {
	known := 0
	for range rounds {
		if len(r.steps) == known {
			break
		}
		known = len(r.steps)
		if err := r.more(ctx, Keys.strong, 0); err != nil {
			return err
		}
	}
	return nil
}

// unsure reads calls that a proxy may have changed, and the steps that they may belong to.
func (r *reading) unsure(ctx context.Context) error {
	q := storage.StepQuery{}
	for _, s := range r.steps {
		if s.unsure() == "" {
			continue
		}
		q.Keys = append(q.Keys, keyUnsure+s.unsure())
		if from := s.At.Add(-afterToken); q.From.IsZero() || from.Before(q.From) {
			q.From = from
		}
		if until := s.At.Add(afterToken); until.After(q.Until) {
			q.Until = until
		}
	}
	slices.Sort(q.Keys)
	q.Keys = slices.Compact(q.Keys)
	if len(q.Keys) == 0 || len(q.Keys) > maxKeys {
		return nil
	}
	_, err := r.read(ctx, q)
	return err
}

// weak returns the keys that other attempts can share.
func weak(k Keys) []string { return keyed(keyClient, short(k.Client), keyAddress, k.Address) }

// maxKeys limits the keys in one query.
const maxKeys = 500

// more reads the steps with keys of the known steps, at any time or within near of them.
func (r *reading) more(ctx context.Context, of func(Keys) []string, near time.Duration) error {
	var keys []string
	var first, last time.Time
	for _, s := range r.steps {
		keys = append(keys, of(s.Keys)...)
		if first.IsZero() || s.At.Before(first) {
			first = s.At
		}
		if s.At.After(last) {
			last = s.At
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	if len(keys) == 0 || len(keys) > maxKeys {
		return nil
	}
	q := storage.StepQuery{Keys: keys, Until: last.AddDate(1, 0, 0)}
	if near > 0 {
		q.From, q.Until = first.Add(-near), last.Add(near)
	}
	_, err := r.read(ctx, q)
	return err
}

func (r *reading) sorted() (out []Step) {
	for _, s := range r.steps {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Step) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.seq, b.seq)) })
	return out
}
