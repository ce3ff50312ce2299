package attempt

import "time"

// afterToken is how long after it got its tokens a client that comes without one is taken to have lost it on
// the way.
const afterToken = 2 * time.Minute

// anonymous reports whether a step is a call without a token: how a client begins, since it learns from the
// answer where to sign in, or what a proxy has made of a request that had one.
func (s Step) anonymous() bool { return s.Kind == Call && s.param(paramToken) == string(TokenNone) }

// byCalls joins calls without a token, of which address and agent is all that is known: to the attempt that
// has just got its tokens, or to what the same client did next. Where the client signs in anew after that, it
// is the same one if it has the same id.
func (j *joiner) byCalls() {
	for i := len(j.steps) - 1; i >= 0; i-- {
		s := j.steps[i]
		if !s.anonymous() || s.Keys.Address == "" {
			continue
		}
		same := func(o Step) bool {
			return o.Keys.Address == s.Keys.Address && o.Request.Agent == s.Request.Agent
		}
		fits := func(o int) bool { return same(j.steps[o]) && j.believed(i, o) }
		before, got := j.first(i, i-1, -1, func(o int) bool {
			return fits(o) && j.steps[o].issued() && s.At.Sub(j.steps[o].At) <= afterToken && !j.passed(o, i)
		})
		after, goesOn := j.first(i, i+1, len(j.steps), func(o int) bool {
			return fits(o) && j.steps[o].Kind != Call && j.steps[o].At.Sub(s.At) <= afterReading
		})
		switch {
		case got && (!goesOn || j.client(after) == "" || j.client(after) == j.client(before)):
			j.join(i, before)
		case goesOn:
			j.join(i, after)
		case j.lost(i):
		default:
			other, found := j.first(i, i+1, len(j.steps), func(o int) bool {
				return fits(o) && j.steps[o].anonymous() && j.steps[o].At.Sub(s.At) <= betweenReadings
			})
			if found {
				j.join(i, other)
			}
		}
	}
}

// unsure is the MCP server of steps that may belong together though neither address nor agent says so: a token
// that was issued, and a call without one that came through a proxy.
func (s Step) unsure() string {
	if s.issued() || s.anonymous() && s.proxied() {
		return s.Keys.Resource
	}
	return ""
}

// lost joins a call that a proxy may have made of one with a token: that proxy can write another agent, and
// be at another address. It may as well be the first call of another client. So it is joined only where nothing
// but calls without a token ever comes from there, just one attempt has got a token for the MCP server right
// before it, no call with that token is known, and the address is the same, or a header says that there is a
// proxy. It reports whether it was joined.
func (j *joiner) lost(call int) bool {
	s := j.steps[call]
	if s.Keys.Resource == "" {
		return false
	}
	before, other := map[int]int{}, map[int]int{} // a token, by its attempt: of the same address, and of any
	for o, t := range j.steps {
		switch away := s.At.Sub(t.At); {
		case away.Abs() > time.Hour:
		case t.Keys.Address == s.Keys.Address && t.Request.Agent == s.Request.Agent && !t.anonymous():
			return false // a client
		case away < 0, away > afterToken, !t.issued(), t.Keys.Resource != s.Keys.Resource:
		case !j.believed(call, o), j.passed(o, len(j.steps)):
		case t.Keys.Address == s.Keys.Address:
			before[j.root(o)] = o
		default:
			other[j.root(o)] = o
		}
	}
	if len(before) == 0 && s.proxied() {
		before = other
	}
	if len(before) != 1 {
		return false
	}
	for _, o := range before {
		j.join(call, o)
	}
	return true
}

// believed reports whether a call can be of the attempt of another step. A resource server in another process
// may say that a request came from any address: it counts for attempts to get to that resource server.
func (j *joiner) believed(call, of int) bool {
	if j.steps[call].Keys.ReportedBy == "" {
		return true
	}
	for o, s := range j.steps {
		if s.Keys.Resource != "" && s.Keys.Resource != j.steps[call].Keys.Resource && j.root(o) == j.root(of) {
			return false
		}
	}
	return true
}

// first is the first step from one to before another that fits, within an hour.
func (j *joiner) first(i, from, to int, fits func(int) bool) (int, bool) {
	step := 1
	if to < from {
		step = -1
	}
	for o := from; o != to && j.steps[o].At.Sub(j.steps[i].At).Abs() <= time.Hour; o += step {
		if fits(o) {
			return o, true
		}
	}
	return 0, false
}

// passed reports whether a call of the attempt of a step was let through before another step.
func (j *joiner) passed(of, before int) bool {
	for o := of; o < before; o++ {
		if s := j.steps[o]; s.Kind == Call && !s.failed() && j.root(o) == j.root(of) {
			return true
		}
	}
	return false
}

// client is the client of the attempt of a step.
func (j *joiner) client(of int) string {
	for o := range j.steps {
		if id := j.steps[o].Keys.Client; id != "" && j.root(o) == j.root(of) {
			return id
		}
	}
	return ""
}
