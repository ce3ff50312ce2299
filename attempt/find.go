package attempt

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// Finder finds attempts in a store.
type Finder struct {
	Store storage.Attempts
	Now   func() time.Time
}

// Query says which attempts are wanted. Empty fields do not matter.
type Query struct {
	Reference string // of any step
	Person    string // the id of the account
	Client    string // the id of the client
	// ClientName is what the client may be called instead, as many are that register themselves.
	ClientName string
	Address    string
	From       time.Time
	Until      time.Time
	Limit      int // the newest; 0: as many as are found
}

const (
	// maxRead bounds the steps that are read at once.
	maxRead = 4000
	// rounds bounds how often the steps found are asked for more of their attempts.
	rounds = 6
	// beside is how long before and after the steps found others may belong to their attempts.
	beside = time.Hour
)

// Find returns the attempts, the newest first (OB-02). Of very many steps it looks at the newest.
func (f Finder) Find(ctx context.Context, q Query) ([]Attempt, error) {
	out, err := f.find(ctx, q)
	if err != nil {
		return nil, err
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

// united is a and those of b that have no step of one of a.
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
	wanted := q.keys()
	r := reading{store: f.Store, steps: map[int64]Step{}}
	found, err := r.read(ctx, storage.StepQuery{Keys: wanted[:min(len(wanted), 1)], From: q.From, Until: until})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if len(wanted) > 0 {
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
	return out, nil
}

// wanted reports whether the attempt is of the person, the client and so on.
func (a Attempt) wanted(q Query) bool {
	if q.ClientName != "" && strings.EqualFold(a.ClientName, q.ClientName) {
		q.Client, q.ClientName = "", ""
	}
	return (q.Client != "" || q.ClientName == "") && a.hasAll(q.keys())
}

// within reports whether something of the attempt is between two times.
func (a Attempt) within(from, until time.Time) bool {
	return !a.EndedAt.Before(from) && a.StartedAt.Before(until)
}

// hasAll reports whether each key is one of a step of the attempt.
func (a Attempt) hasAll(wanted []string) bool {
	for _, key := range wanted {
		if !slices.ContainsFunc(a.all, func(s Step) bool { return slices.Contains(s.all(), key) }) {
			return false
		}
	}
	return true
}

// reading is the steps that were read, by their place in the store.
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
			continue // of a later version that writes something else
		}
		s.seq = row.Seq
		r.steps[row.Seq] = s
	}
	return found, err
}

// complete reads what belongs to the steps: by the keys that only one attempt has, then what is beside them
// of the same clients and addresses, and then what belongs to that.
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

// certain reads the steps of the same attempts, as long as there are more.
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

// unsure reads what may be a call of the attempts that a proxy has changed, and whose it may be.
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

// weak are the keys that other attempts have as well.
func weak(k Keys) []string { return keyed(keyClient, short(k.Client), keyAddress, k.Address) }

// maxKeys bounds the keys that are asked for at once.
const maxKeys = 500

// more reads the steps with the keys of those that are known, of any time or of one not far from theirs.
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
