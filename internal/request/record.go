// Package request keeps one record of each request. Handlers note facts in it while they work. Audit
// events include its attributes, and when the request has ended, its log line and the step of its
// connection attempt are made from it.
package request

import (
	"context"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Record is the record of one request. It is safe for concurrent use. The methods of a nil Record do
// nothing.
type Record struct {
	reference string
	at        time.Time
	from      netip.Addr

	mu      sync.Mutex // guards the fields below
	attrs   []slog.Attr
	refusal *oauth.Error
	seen    Seen
}

// New returns the record of a request that arrived at a time from an address.
func New(reference string, at time.Time, from netip.Addr) *Record {
	r := &Record{reference: reference, at: at, from: from}
	r.Note(slog.String(referenceKey, reference))
	return r
}

// referenceKey is the name of the attribute with the reference.
const referenceKey = "request_id"

// Without returns a record with attributes for work that is not an HTTP request, such as a command.
func Without(attrs ...slog.Attr) *Record {
	r := &Record{}
	r.Note(attrs...)
	return r
}

type recordKey struct{}

// Within returns a context that carries the record.
func (r *Record) Within(ctx context.Context) context.Context {
	return context.WithValue(ctx, recordKey{}, r)
}

// Of returns the record that ctx carries, or nil.
func Of(ctx context.Context) *Record {
	r, _ := ctx.Value(recordKey{}).(*Record)
	return r
}

// Reference identifies the request for users and operators.
func (r *Record) Reference() string {
	if r == nil {
		return ""
	}
	return r.reference
}

// Arrival returns when and from where the request arrived.
func (r *Record) Arrival() (at time.Time, from netip.Addr) {
	if r == nil {
		return at, from
	}
	return r.at, r.from
}

// Note sets attributes, replacing those with the same names.
func (r *Record) Note(attrs ...slog.Attr) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range flat(attrs, 0) {
		if i := index(r.attrs, a.Key); i >= 0 {
			r.attrs[i] = a
			continue
		}
		r.attrs = append(r.attrs, a)
	}
}

// Attrs returns a copy of the attributes.
func (r *Record) Attrs() []slog.Attr {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.attrs)
}

// ReferenceAttr returns the reference as an attribute for log lines, or an empty attribute, which
// handlers omit.
func (r *Record) ReferenceAttr() slog.Attr {
	attrs := r.Attrs()
	if i := index(attrs, referenceKey); i >= 0 {
		return attrs[i]
	}
	return slog.Attr{}
}

// Added returns the attributes of an event and those of the record. The event's own attributes win:
// they may be about another user or client.
func (r *Record) Added(attrs []slog.Attr) []slog.Attr {
	if r == nil {
		return flat(attrs, 0)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out := flat(attrs, len(r.attrs))
	for _, a := range r.attrs {
		if index(out, a.Key) < 0 {
			out = append(out, a)
		}
	}
	return out
}

// Refuse notes the protocol error of the answer. The last one counts.
func (r *Record) Refuse(e *oauth.Error) {
	r.see(func(*Seen) { r.refusal = e })
}

// Refusal returns the protocol error of the answer, or nil.
func (r *Record) Refusal() *oauth.Error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusal
}

// Seen contains what an authorization needs to be followed from request to request. It contains
// secrets: it must not be stored or logged, except by digests (see internal/attempt).
type Seen struct {
	Params   url.Values // parameters of the request
	Encoded  string     // Params in the order of the request
	Asked    url.Values // parameters of the authorization request that the request belongs to
	UserCode string     // of a device (RFC 8628)
	Expected []Expected
	Page     string     // page shown to the user
	To       string     // redirect target of the browser
	Response url.Values // parameters of the redirect
	Code     string     // issued to the client
	Client   string     // ID of the registered client
	Name     string     // name of the registered client
}

// Expected lists the accepted values of a parameter.
type Expected struct {
	Name string
	Got  string
	Want []string
}

// Seen returns what was noted.
func (r *Record) Seen() Seen {
	if r == nil {
		return Seen{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seen
	s.Expected = slices.Clone(s.Expected)
	return s
}

func (r *Record) see(note func(*Seen)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	note(&r.seen)
}

// Sent notes the parameters of a client's request, and their encoded form.
func (r *Record) Sent(params url.Values, encoded string) {
	r.see(func(s *Seen) { s.Params, s.Encoded = params, encoded })
}

// Asked notes the authorization request that the request belongs to.
func (r *Record) Asked(params url.Values) {
	r.see(func(s *Seen) { s.Asked = params })
}

// ForDevice notes the user code (RFC 8628), which connects the requests of the device and the user.
func (r *Record) ForDevice(userCode string) {
	r.see(func(s *Seen) { s.UserCode = userCode })
}

// maxExpected limits the notes of Expect.
const maxExpected = 4

// Expect notes the accepted values of a parameter that had the value got.
func (r *Record) Expect(name, got string, want []string) {
	r.see(func(s *Seen) {
		if len(s.Expected) < maxExpected {
			s.Expected = append(s.Expected, Expected{name, got, want})
		}
	})
}

// Showing notes the page that is shown to the user.
func (r *Record) Showing(page string) {
	r.see(func(s *Seen) { s.Page = page })
}

// Sending notes that the browser is redirected with a response.
func (r *Record) Sending(to string, response url.Values) {
	r.see(func(s *Seen) { s.To, s.Response = to, response })
}

// Issued notes a code that the client receives.
func (r *Record) Issued(code string) {
	r.see(func(s *Seen) { s.Code = code })
}

// Registered notes the client that a registration created.
func (r *Record) Registered(id, name string) {
	r.see(func(s *Seen) { s.Client, s.Name = id, name })
}
