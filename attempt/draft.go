package attempt

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Draft gathers the step of a request while that is handled, as audit.Request gathers what its events
// say. What it is told is redacted at once.
type Draft struct {
	digest Digester

	mu   sync.Mutex // guards step
	step Step
}

type draftKey struct{}

// within returns a context for what happens in the request of the draft.
func within(ctx context.Context, d *Draft) context.Context {
	return context.WithValue(ctx, draftKey{}, d)
}

// note changes the step of the request of ctx. Outside of a request it does nothing.
func note(ctx context.Context, change func(Digester, *Step)) {
	d, ok := ctx.Value(draftKey{}).(*Draft)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d.digest, &d.step)
}

// Sent notes the parameters of a request of a client to an endpoint, in the order of its encoded form.
func Sent(ctx context.Context, values url.Values, encoded string) {
	note(ctx, func(d Digester, s *Step) {
		s.Request.Params = d.Redact(values, order(encoded))
		s.Keys.Code = d.Digest(cmp.Or(values.Get("code"), values.Get("device_code")))
		if values.Has("response_type") {
			s.Keys.Thread = d.thread(values)
		}
		if id := values.Get("client_id"); id != "" {
			s.Keys.Client = id
		}
	})
}

// Asked notes the authorization request that a request belongs to. Of a form, whose own parameters say
// less, it has the parameters.
func Asked(ctx context.Context, values url.Values) {
	note(ctx, func(d Digester, s *Step) {
		s.Keys.Thread = d.thread(values)
		if s.Request.Params == nil {
			s.Request.Params = d.Redact(values, sorted(values))
		}
		if id := values.Get("client_id"); id != "" {
			s.Keys.Client = id
		}
	})
}

// ForDevice notes the user code (RFC 8628) under which a device waits, which the device and the person have.
func ForDevice(ctx context.Context, userCode string) {
	note(ctx, func(d Digester, s *Step) {
		if userCode != "" {
			s.Keys.Thread = d.Digest("user code", userCode)
		}
	})
}

// thread is of what is the same in all requests that belong to one authorization request.
func (d Digester) thread(values url.Values) string {
	return d.Digest(values.Get("client_id"), values.Get("redirect_uri"), values.Get("state"),
		values.Get("code_challenge"))
}

// Expect notes what a parameter, an address that was sent as got, would have had to be: one of want.
func Expect(ctx context.Context, name, got string, want []string) {
	note(ctx, func(_ Digester, s *Step) {
		if len(s.Expected) == maxExpected {
			return
		}
		e := Expected{Name: name, Difference: compared(got, want)}
		for _, w := range want[:min(len(want), maxExpected)] {
			e.Values = append(e.Values, cut(oauth.Redacted(w), maxValue))
		}
		s.Expected = append(s.Expected, e)
	})
}

const maxExpected = 4

// Showing notes what the person is shown.
func Showing(ctx context.Context, page string) {
	note(ctx, func(_ Digester, s *Step) { s.Answer.Page = page })
}

// Sending notes that the browser is sent to a place with a response.
func Sending(ctx context.Context, to string, response url.Values) {
	note(ctx, func(d Digester, s *Step) {
		s.Answer.To, s.Answer.Params = cut(oauth.Redacted(to), maxValue), d.Redact(response, sorted(response))
		if code := d.Digest(response.Get("code")); code != "" {
			s.Keys.Code = code
		}
	})
}

// Issued notes a code that the client is given to come back with.
func Issued(ctx context.Context, code string) {
	note(ctx, func(d Digester, s *Step) { s.Keys.Code = d.Digest(code) })
}

// Refused notes the protocol error that a request is answered with.
func Refused(ctx context.Context, e *oauth.Error) {
	note(ctx, func(_ Digester, s *Step) {
		s.Answer.Error, s.Answer.Description = string(e.Code), Described(e.Description)
		s.Answer.Cause = CauseOf(e)
	})
}

// Registered notes the client that came of a registration.
func Registered(ctx context.Context, id, name string) {
	note(ctx, func(_ Digester, s *Step) { s.Keys.Client, s.Keys.ClientName = id, cut(name, maxValue) })
}

// Reference is what names the request to people.
func (d *Draft) Reference() string {
	if d == nil {
		return NewReference()
	}
	return d.step.Reference
}

// order is in which order an encoded form has its parameters.
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

// product is the first product of a User-Agent (RFC 9110 §10.1.5).
var product = regexp.MustCompile(`^[A-Za-z0-9._@+~/-]{1,60}`)

// telling are headers by which clients are told apart. Their order is not known: net/http does not keep it, and
// proxies write their own (docs/decisions/audit.md).
var telling = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Dpop", "Mcp-Protocol-Version", "Origin",
	"Sec-Fetch-Dest", "Sec-Fetch-Mode", "Traceparent", "X-Requested-With",
}

func (d *Draft) begin(r *http.Request, address string, now time.Time) {
	s := &d.step
	s.Reference, s.At = NewReference(), now
	s.Request.Method = cut(r.Method, 10)
	s.Request.Agent = product.FindString(r.UserAgent())
	s.Request.Header = sentBy(r, telling)
	s.Keys.Address = address
	s.Keys.Fingerprint = d.digest.Digest(append([]string{s.Request.Agent}, s.Request.Header...)...)
}

// sentBy are those of some headers that a request has.
func sentBy(r *http.Request, names []string) (sent []string) {
	for _, name := range names {
		if _, has := r.Header[name]; has {
			sent = append(sent, strings.ToLower(name))
		}
	}
	return sent
}
