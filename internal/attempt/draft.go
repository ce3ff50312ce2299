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

// Draft collects the step of a request during its handling, as audit.Request collects the
// attributes of its events. Values are redacted immediately.
type Draft struct {
	digest Digester

	mu   sync.Mutex // guards step
	step Step
}

type draftKey struct{}

// within returns a context that carries the draft.
func within(ctx context.Context, d *Draft) context.Context {
	return context.WithValue(ctx, draftKey{}, d)
}

// note changes the step of the request of ctx. Outside a request it does nothing.
func note(ctx context.Context, change func(Digester, *Step)) {
	d, ok := ctx.Value(draftKey{}).(*Draft)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d.digest, &d.step)
}

// Sent notes the parameters of a client's request to an endpoint, in the order of its encoded form.
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

// Asked notes the authorization request that a request belongs to. For a form without its own
// parameters, it notes those of the authorization request.
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

// ForDevice notes the user code (RFC 8628), which connects the requests of the device and the user.
func ForDevice(ctx context.Context, userCode string) {
	note(ctx, func(d Digester, s *Step) {
		if userCode != "" {
			s.Keys.Thread = d.Digest("user code", userCode)
		}
	})
}

// thread returns a digest of the parameters that are equal in all requests of one authorization
// request.
func (d Digester) thread(values url.Values) string {
	return d.Digest(values.Get("client_id"), values.Get("redirect_uri"), values.Get("state"),
		values.Get("code_challenge"))
}

// Expect notes the accepted values of a parameter. got is the address that was sent, want lists the
// accepted ones.
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

// Showing notes the page that is shown to the user.
func Showing(ctx context.Context, page string) {
	note(ctx, func(_ Digester, s *Step) { s.Answer.Page = page })
}

// Sending notes that the browser is redirected with a response.
func Sending(ctx context.Context, to string, response url.Values) {
	note(ctx, func(d Digester, s *Step) {
		s.Answer.To, s.Answer.Params = cut(oauth.Redacted(to), maxValue), d.Redact(response, sorted(response))
		if code := d.Digest(response.Get("code")); code != "" {
			s.Keys.Code = code
		}
	})
}

// Issued notes a code that the client receives.
func Issued(ctx context.Context, code string) {
	note(ctx, func(d Digester, s *Step) { s.Keys.Code = d.Digest(code) })
}

// Refused notes the protocol error in the answer to a request.
func Refused(ctx context.Context, e *oauth.Error) {
	note(ctx, func(_ Digester, s *Step) {
		s.Answer.Error, s.Answer.Description = string(e.Code), Described(e.Description)
		s.Answer.Cause = CauseOf(e)
	})
}

// Registered notes the client that a registration created.
func Registered(ctx context.Context, id, name string) {
	note(ctx, func(_ Digester, s *Step) { s.Keys.Client, s.Keys.ClientName = id, cut(name, maxValue) })
}

// Reference returns the reference of the request, which users can quote.
func (d *Draft) Reference() string {
	if d == nil {
		return NewReference()
	}
	return d.step.Reference
}

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

func (d *Draft) begin(r *http.Request, address string, now time.Time) {
	s := &d.step
	s.Reference, s.At = NewReference(), now
	s.Request.Method = cut(r.Method, 10)
	s.Request.Agent = product.FindString(r.UserAgent())
	s.Request.Header = sentBy(r, telling)
	s.Keys.Address = address
	s.Keys.Fingerprint = d.digest.Digest(append([]string{s.Request.Agent}, s.Request.Header...)...)
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
