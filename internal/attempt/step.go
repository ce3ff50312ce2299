package attempt

import (
	"encoding/json"
	"strings"
	"time"
)

// Kind is the kind of step that a request is.
type Kind string

// The steps, in the order of an attempt.
const (
	Discovery    Kind = "discovery"    // the client reads metadata
	Registration Kind = "registration" // RFC 7591
	Authorize    Kind = "authorize"    // an authorization request, including pushed and device requests
	SignIn       Kind = "signin"       // the user authenticates
	Provider     Kind = "provider"     // the user goes to a provider, or returns
	Consent      Kind = "consent"      // the user decides
	Token        Kind = "token"        // the client gets its tokens
	Refresh      Kind = "refresh"      // the client refreshes; stored if refused, or after a metadata reading
	Call         Kind = "call"         // the client calls the MCP server
)

// kinds lists every Kind.
var kinds = []Kind{Discovery, Registration, Authorize, SignIn, Provider, Consent, Token, Refresh, Call}

// Step is one request and its answer, in stored form, without secrets.
type Step struct {
	Reference string     `json:"reference"` // shown to the user or the client
	At        time.Time  `json:"at"`
	Kind      Kind       `json:"step"`
	Request   Request    `json:"request"`
	Answer    Answer     `json:"answer"`
	Expected  []Expected `json:"expected,omitempty"`
	Keys      Keys       `json:"keys"`
	seq       int64      // sequence number in the store
}

// Request describes the request.
type Request struct {
	Method string   `json:"method"`
	Path   string   `json:"path"`
	Params []Param  `json:"params,omitempty"` // in the order of the request
	Agent  string   `json:"agent,omitempty"`  // the first product of User-Agent
	Header []string `json:"header,omitempty"` // which of the distinguishing headers were sent
}

// Param is a parameter with its redacted value.
type Param struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Answer describes the answer.
type Answer struct {
	Status      int     `json:"status"`
	Took        float64 `json:"took_ms"`
	Error       string  `json:"error,omitempty"`       // protocol error code
	Description string  `json:"description,omitempty"` // as it was sent
	Reason      string  `json:"reason,omitempty"`      // more detail than was sent
	Cause       Cause   `json:"cause,omitempty"`       // the reason, for programs
	Outcome     string  `json:"outcome,omitempty"`     // of a call, as named by the guard
	Page        string  `json:"page,omitempty"`        // page shown to the user
	To          string  `json:"to,omitempty"`          // redirect target of the browser
	Params      []Param `json:"params,omitempty"`      // parameters of the redirect
}

// Expected lists the accepted values of a parameter.
type Expected struct {
	Name       string      `json:"name"`
	Values     []string    `json:"values,omitempty"` // any of these
	Difference *Difference `json:"difference,omitempty"`
}

// Keys are used to join and to find steps.
type Keys struct {
	Client      string `json:"client_id,omitempty"`
	ClientName  string `json:"client_name,omitempty"`
	Person      string `json:"person,omitempty"` // ID of the account
	PersonName  string `json:"person_name,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Match       string `json:"resource_match,omitempty"` // ignored difference in the resource name
	Grant       string `json:"grant,omitempty"`
	Thread      string `json:"thread,omitempty"` // digest of the values shared within one authorization request
	Code        string `json:"code,omitempty"`   // digest of the authorization code
	Address     string `json:"address,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"` // digest of agent and headers
	// ReportedBy is the client ID of the resource server in another process that reported the step,
	// or "".
	ReportedBy string `json:"reported_by,omitempty"`
}

// Prefixes of the keys in the store.
const (
	keyReference = "ref:"
	keyClient    = "client:"
	keyPerson    = "person:"
	keyThread    = "thread:"
	keyCode      = "code:"
	keyGrant     = "grant:"
	keyAddress   = "address:"
	keyUnsure    = "unsure:" // see joincall.go
)

// strong returns the keys that only one attempt has.
func (k Keys) strong() []string {
	return keyed(keyThread, k.Thread, keyCode, k.Code, keyGrant, k.Grant)
}

// all returns the keys that find a step.
func (s Step) all() []string {
	k := s.Keys
	out := append(k.strong(), keyed(keyReference, s.Reference, keyClient, short(k.Client), keyPerson, k.Person,
		keyAddress, k.Address)...)
	if k.Address != "" && (s.Kind == Discovery || s.Kind == Refresh && !s.failed()) {
		out = append(out, s.readIn(s.At))
	}
	return append(out, keyed(keyUnsure, s.unsure())...)
}

func keyed(prefixesAndValues ...string) (out []string) {
	for i := 0; i+1 < len(prefixesAndValues); i += 2 {
		if v := prefixesAndValues[i+1]; v != "" {
			out = append(out, prefixesAndValues[i]+v)
		}
	}
	return out
}

// failed reports whether the step was refused.
func (s Step) failed() bool { return s.Answer.failed() }

func (a Answer) failed() bool { return a.Error != "" || a.Status >= 400 }

// issued reports whether the client got tokens.
func (s Step) issued() bool { return s.Kind == Token && s.Answer.Status == 200 && s.Answer.Error == "" }

// param returns a parameter of the request.
func (s Step) param(name string) string { return value(s.Request.Params, name) }

// sent returns a parameter of the redirect.
func (s Step) sent(name string) string { return value(s.Answer.Params, name) }

func value(params []Param, name string) string {
	for _, p := range params {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

const (
	// maxStep limits a stored step, in bytes, and maxSteps the steps of one attempt: 64 KiB
	// together.
	maxStep  = 2 << 10
	maxSteps = 32
)

// encode returns the stored form of the step. If it is too large, the least useful parts are
// dropped first.
func (s Step) encode() []byte {
	for _, less := range []func(*Step){
		func(*Step) {},
		func(s *Step) { s.Request.Header = nil },
		func(s *Step) { s.Expected = shortened(s.Expected) },
		func(s *Step) { s.Request.Params, s.Answer.Params = cutAll(s.Request.Params), cutAll(s.Answer.Params) },
		func(s *Step) { s.Request.Params, s.Answer.Params, s.Keys.Client = nil, nil, short(s.Keys.Client) },
	} {
		less(&s)
		if b, err := json.Marshal(s); err == nil && len(b) <= maxStep {
			return b
		}
	}
	b, _ := json.Marshal(Step{Reference: s.Reference, At: s.At, Kind: s.Kind, Answer: Answer{Status: s.Answer.Status}})
	return b
}

func shortened(all []Expected) (out []Expected) {
	for _, e := range all {
		e.Values = nil
		out = append(out, e)
	}
	return out
}

func cutAll(params []Param) (out []Param) {
	for _, p := range params {
		out = append(out, Param{p.Name, cut(p.Value, 40)})
	}
	return out
}

// cut limits text from others to n bytes and keeps it valid UTF-8.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}

// short shortens a long client ID for use as a key: its first and last bytes, which differ between
// registrations.
func short(id string) string {
	if len(id) <= 80 {
		return id
	}
	return strings.ToValidUTF8(id[:40]+id[len(id)-40:], "?")
}
