package attempt

import (
	"cmp"
	"slices"
	"time"
)

// Attempt is a client's sequence of steps to get one token, with its verdict.
type Attempt struct {
	ID         string    `json:"id"`
	Reference  string    `json:"reference"` // of the deciding step, or else the first
	StartedAt  time.Time `json:"started_at"`
	EndedAt    time.Time `json:"ended_at"`
	ClientID   string    `json:"client_id"`
	ClientName string    `json:"client_name"`
	Agent      string    `json:"agent"`
	Person     string    `json:"person"`
	Resource   string    `json:"resource"`
	Last       Kind      `json:"step"`
	Verdict
	Steps   []Step `json:"-"`
	LeftOut int    `json:"-"` // number of omitted steps in the middle
	all     []Step // including the omitted steps
	judged  time.Time
}

const idPrefix = "att_"

const (
	// aroundRegistration is the maximum time from a registration to its client's authorization
	// request.
	aroundRegistration = time.Hour
	// afterReading is the maximum time from a metadata reading to the same client's next request.
	afterReading = 15 * time.Minute
	// betweenReadings is the maximum time between two metadata readings of the same attempt.
	betweenReadings = 5 * time.Minute
	// beforeToken is the maximum time from an authorization request to a token request with an
	// unknown code.
	beforeToken = time.Hour
)

// Join combines steps to attempts, in the order of their starts. Keys that only one attempt has (a
// code, a grant, all parameters of an authorization request) join steps with certainty. Other steps
// are joined by client, or by address and agent, to the nearest one in time: registrations,
// metadata readings, token requests with an unknown code, and calls without a token.
func Join(steps []Step, now time.Time) []Attempt {
	steps = slices.Clone(steps) // OB-01
	slices.SortStableFunc(steps, func(a, b Step) int { return a.At.Compare(b.At) })
	j := newJoiner(steps)
	j.byKeys()
	j.byClient()
	j.byAddress()
	j.byCalls()
	return j.attempts(now)
}

// joiner is a union-find structure: each step points to another step of its attempt, or to itself.
type joiner struct {
	steps []Step
	to    []int
}

func newJoiner(steps []Step) *joiner {
	j := &joiner{steps: steps, to: make([]int, len(steps))}
	for i := range j.to {
		j.to[i] = i
	}
	return j
}

func (j *joiner) root(i int) int {
	for j.to[i] != i {
		j.to[i] = j.to[j.to[i]]
		i = j.to[i]
	}
	return i
}

func (j *joiner) join(a, b int) {
	a, b = j.root(a), j.root(b)
	j.to[max(a, b)] = min(a, b)
}

func (j *joiner) byKeys() {
	first := map[string]int{}
	for i, s := range j.steps {
		for _, key := range s.Keys.strong() {
			if other, known := first[key]; known {
				j.join(i, other)
				continue
			}
			first[key] = i
		}
	}
}

// byClient joins a registration to the first authorization request of its client. It joins a token
// request without a known authorization request to its client's last one.
func (j *joiner) byClient() {
	authorized := map[string]bool{} // groups, by root and client, with an authorization request
	for i, s := range j.steps {
		if s.Kind == Authorize {
			authorized[j.name(i)] = true
		}
	}
	for i, s := range j.steps {
		switch {
		case s.Keys.Client == "":
		case s.Kind == Registration:
			j.joinFirst(i, i+1, len(j.steps), func(o Step) bool {
				return o.Kind == Authorize && o.Keys.Client == s.Keys.Client && o.At.Sub(s.At) <= aroundRegistration
			})
		case s.Kind == Token && s.failed() && !authorized[j.name(i)]:
			j.joinFirst(i, i-1, -1, func(o Step) bool {
				return o.Kind == Authorize && o.Keys.Client == s.Keys.Client && s.At.Sub(o.At) <= beforeToken
			})
		}
	}
}

func (j *joiner) name(i int) string { return j.steps[j.root(i)].Reference + j.steps[i].Keys.Client }

// byAddress joins metadata readings to the next request with the same address and agent: another
// reading, or the first request of an attempt.
func (j *joiner) byAddress() {
	for i := len(j.steps) - 1; i >= 0; i-- {
		s := j.steps[i]
		if s.Kind != Discovery || s.Keys.Address == "" {
			continue
		}
		same := func(o Step, within time.Duration) bool {
			return o.Keys.Address == s.Keys.Address && o.At.Sub(s.At) <= within
		}
		if j.joinFirst(i, i+1, len(j.steps), func(o Step) bool {
			return o.Request.Agent == s.Request.Agent && o.Kind != Discovery && same(o, afterReading) &&
				(o.Kind != Call || o.anonymous())
		}) {
			continue
		}
		_ = j.joinFirst(i, i+1, len(j.steps), func(o Step) bool { // the browser sends the next request
			return o.Kind == Authorize && same(o, betweenReadings)
		}) || j.joinFirst(i, i+1, len(j.steps), func(o Step) bool {
			return o.Kind == Discovery && o.Request.Agent == s.Request.Agent && same(o, betweenReadings)
		})
	}
}

// joinFirst joins i to the first matching step between from and to, and reports whether there is
// one.
func (j *joiner) joinFirst(i, from, to int, fits func(Step) bool) bool {
	o, found := j.first(i, from, to, func(o int) bool { return fits(j.steps[o]) })
	if found {
		j.join(i, o)
	}
	return found
}

func (j *joiner) attempts(now time.Time) (out []Attempt) {
	groups, roots := map[int][]Step{}, []int{}
	for i, s := range j.steps {
		root := j.root(i)
		if groups[root] == nil {
			roots = append(roots, root)
		}
		groups[root] = append(groups[root], s)
	}
	for _, root := range roots {
		out = append(out, newAttempt(groups[root], now))
	}
	return out
}

// newAttempt builds an attempt from its ordered steps, of which there is at least one.
func newAttempt(steps []Step, now time.Time) Attempt {
	a := Attempt{
		ID:        idPrefix + steps[0].Reference,
		StartedAt: steps[0].At,
		EndedAt:   steps[len(steps)-1].At,
		all:       steps,
		judged:    now,
	}
	a.Last = steps[len(steps)-1].Kind
	name, id := "", ""
	for _, s := range steps { // later information takes precedence
		a.ClientID = cmp.Or(s.Keys.Client, a.ClientID)
		a.ClientName = cmp.Or(s.Keys.ClientName, a.ClientName)
		name, id = cmp.Or(s.Keys.PersonName, name), cmp.Or(s.Keys.Person, id)
		a.Resource = cmp.Or(s.Keys.Resource, a.Resource)
		if s.Kind == Discovery || s.Kind == Registration || s.Kind == Token || s.anonymous() {
			a.Agent = cmp.Or(s.Request.Agent, a.Agent)
		}
	}
	a.Person = cmp.Or(name, id)
	a.Verdict = Judge(steps, now)
	a.Reference = cmp.Or(a.Verdict.Decided, steps[0].Reference)
	if len(steps) > maxSteps {
		a.LeftOut = len(steps) - maxSteps
		steps = slices.Concat(steps[:maxSteps/2], steps[len(steps)-maxSteps/2:])
	}
	a.Steps = steps
	return a
}
