package attempt

import "time"

// afterToken is how long after a token was issued a call without a token is attributed to the same
// client. The client then has lost the token on the way.
const afterToken = 2 * time.Minute

// anonymous reports whether a step is a call without a token. A client starts with such a call,
// whose answer names the authorization server. It can also be a request whose token a proxy has
// removed.
func (s Step) anonymous() bool { return s.Kind == Call && s.param(paramToken) == string(TokenNone) }

// byCalls joins calls without a token, which are identified only by address and agent. It joins
// each to the attempt that has just got its tokens, or to the client's next step. If the client
// signs in again afterwards, it counts as the same client only if it has the same ID.
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

// unsure returns the MCP server of steps that may belong together although address and agent
// differ: an issued token, and a proxied call without a token.
func (s Step) unsure() string {
	if s.issued() || s.anonymous() && s.proxied() {
		return s.Keys.Resource
	}
	return ""
}

// lost joins a call whose token a proxy may have removed. Such a proxy can send another agent and
// have another address. The call may also be the first call of another client, so it is joined only
// if all of the following hold:
//   - its address and agent never send anything but calls without a token
//   - exactly one attempt has got a token for the MCP server right before it
//   - no call with that token is known
//   - the address is the same, or a header reveals a proxy
//
// It reports whether it joined the call.
func (j *joiner) lost(call int) bool {
	s := j.steps[call]
	if s.Keys.Resource == "" {
		return false
	}
	before, other := map[int]int{}, map[int]int{} // issued tokens by attempt: from the same address, and from any other
	for o, t := range j.steps {
		switch away := s.At.Sub(t.At); {
		case away.Abs() > time.Hour:
		case t.Keys.Address == s.Keys.Address && t.Request.Agent == s.Request.Agent && !t.anonymous():
			return false // a different client
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

// believed reports whether a call can belong to the attempt of another step. A resource server in
// another process can report any address, so its reports count only for attempts to reach that
// resource server.
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

// first returns the first matching step between from and to, within an hour.
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

// passed reports whether a call of the step's attempt was let through before another step.
func (j *joiner) passed(of, before int) bool {
	for o := of; o < before; o++ {
		if s := j.steps[o]; s.Kind == Call && !s.failed() && j.root(o) == j.root(of) {
			return true
		}
	}
	return false
}

// client returns the client ID of the step's attempt.
func (j *joiner) client(of int) string {
	for o := range j.steps {
		if id := j.steps[o].Keys.Client; id != "" && j.root(o) == j.root(of) {
			return id
		}
	}
	return ""
}
