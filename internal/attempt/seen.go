package attempt

import (
	"cmp"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// arrived returns the step of a request that has just arrived: what its headers and its address
// tell.
func (d Digester) arrived(reference string, r *http.Request, from netip.Addr, at time.Time) Step {
	agent, header := product.FindString(r.UserAgent()), sentBy(r, telling)
	return Step{
		Reference: reference,
		At:        at,
		Request:   Request{Method: cut(r.Method, 10), Agent: agent, Header: header},
		Keys:      Keys{Address: textOf(from), Fingerprint: d.Digest(append([]string{agent}, header...)...)},
	}
}

// see adds to a step what the handlers of its request noted. Secrets become digests.
func (d Digester) see(s *Step, seen request.Seen) {
	s.Request.Params = d.Redact(seen.Params, order(seen.Encoded))
	if s.Request.Params == nil { // such as a form of ours, which belongs to an authorization request
		s.Request.Params = d.Redact(seen.Asked, sorted(seen.Asked))
	}
	for _, e := range seen.Expected {
		s.Expected = append(s.Expected, expected(e))
	}
	a, k := &s.Answer, &s.Keys
	a.Page, a.To = seen.Page, cut(oauth.Redacted(seen.To), maxValue)
	a.Params = d.Redact(seen.Response, sorted(seen.Response))
	k.Thread = d.Digest(thread(seen)...)
	k.Code = cmp.Or(d.Digest(seen.Code), d.Digest(seen.Response.Get("code")),
		d.Digest(cmp.Or(seen.Params.Get("code"), seen.Params.Get("device_code"))))
	k.Client = cmp.Or(seen.Client, seen.Asked.Get("client_id"), seen.Params.Get("client_id"))
	k.ClientName = cut(seen.Name, maxValue)
}

// thread returns the values that are equal in all requests of one authorization request, or nil.
func thread(seen request.Seen) []string {
	of := seen.Asked
	switch {
	case seen.UserCode != "":
		return []string{"user code", seen.UserCode}
	case of == nil && seen.Params.Has("response_type"):
		of = seen.Params
	}
	return []string{of.Get("client_id"), of.Get("redirect_uri"), of.Get("state"), of.Get("code_challenge")}
}

func expected(e request.Expected) Expected {
	out := Expected{Name: e.Name, Difference: compared(e.Got, e.Want)}
	for _, w := range e.Want[:min(len(e.Want), maxExpected)] {
		out.Values = append(out.Values, cut(oauth.Redacted(w), maxValue))
	}
	return out
}

// maxExpected limits the stored values of an Expected.
const maxExpected = 4

// order returns the parameter names of an encoded form, in their order.
func order(encoded string) (names []string) {
	for pair := range strings.SplitSeq(encoded, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(name); err == nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
		if len(names) == 4*maxParams {
			break
		}
	}
	return names
}

func sorted(values url.Values) (names []string) {
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// product matches the first product of a User-Agent (RFC 9110 §10.1.5).
var product = regexp.MustCompile(`^[A-Za-z0-9._@+~/-]{1,60}`)

// telling lists headers that distinguish clients. Their order is unknown: net/http does not
// preserve it, and proxies write their own (docs/decisions/audit.md).
var telling = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Dpop", "Mcp-Protocol-Version", "Origin",
	"Sec-Fetch-Dest", "Sec-Fetch-Mode", "Traceparent", "X-Requested-With",
}

// sentBy returns which of the named headers a request has.
func sentBy(r *http.Request, names []string) (sent []string) {
	for _, name := range names {
		if _, has := r.Header[name]; has {
			sent = append(sent, strings.ToLower(name))
		}
	}
	return sent
}
