package attempt

import (
	"encoding/json"
	"strings"
	"time"
)

// Kind is which step of an attempt a request belongs to.
type Kind string

// The steps, in the order in which a client goes through them.
const (
	Discovery    Kind = "discovery"    // metadata are read
	Registration Kind = "registration" // RFC 7591
	Authorize    Kind = "authorize"    // the authorization request, also one that is pushed, or of a device
	SignIn       Kind = "signin"       // the person proves who they are
	Provider     Kind = "provider"     // the person goes to a provider, or comes back
	Consent      Kind = "consent"      // the person decides
	Token        Kind = "token"        // the client gets its tokens
	Refresh      Kind = "refresh"      // ... again, and was refused, or had read metadata before
	Call         Kind = "call"         // the client asks the MCP server
)

// kinds are all of them.
var kinds = []Kind{Discovery, Registration, Authorize, SignIn, Provider, Consent, Token, Refresh, Call}

// Step is one request and its answer, as they are kept: without anything secret.
type Step struct {
	Reference string     `json:"reference"` // what the person or the client was told
	At        time.Time  `json:"at"`
	Kind      Kind       `json:"step"`
	Request   Request    `json:"request"`
	Answer    Answer     `json:"answer"`
	Expected  []Expected `json:"expected,omitempty"`
	Keys      Keys       `json:"keys"`
	seq       int64      // in the store
}

// Request is what was asked.
type Request struct {
	Method string   `json:"method"`
	Path   string   `json:"path"`
	Params []Param  `json:"params,omitempty"` // in the order in which they were sent
	Agent  string   `json:"agent,omitempty"`  // the first product of User-Agent
	Header []string `json:"header,omitempty"` // which headers were sent that tell clients apart
}

// Param is a parameter, as far as it may be kept.
type Param struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Answer is what was answered.
type Answer struct {
	Status      int     `json:"status"`
	Took        float64 `json:"took_ms"`
	Error       string  `json:"error,omitempty"`       // the code of the protocol
	Description string  `json:"description,omitempty"` // as it was sent
	Reason      string  `json:"reason,omitempty"`      // more than was sent
	Cause       Cause   `json:"cause,omitempty"`       // the same, for programs
	Outcome     string  `json:"outcome,omitempty"`     // of a call, as the guard names it
	Page        string  `json:"page,omitempty"`        // what the person was shown
	To          string  `json:"to,omitempty"`          // the place that the browser was sent to
	Params      []Param `json:"params,omitempty"`      // with this
}

// Expected is what a parameter would have had to be.
type Expected struct {
	Name       string      `json:"name"`
	Values     []string    `json:"values,omitempty"` // any of these
	Difference *Difference `json:"difference,omitempty"`
}

// Keys are what steps are joined and found by.
type Keys struct {
	Client      string `json:"client_id,omitempty"`
	ClientName  string `json:"client_name,omitempty"`
	Person      string `json:"person,omitempty"` // the id of the account
	PersonName  string `json:"person_name,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Match       string `json:"resource_match,omitempty"` // what was overlooked in the name of the resource
	Grant       string `json:"grant,omitempty"`
	Thread      string `json:"thread,omitempty"` // digest of what is the same in all of one authorization request
	Code        string `json:"code,omitempty"`   // digest of the authorization code
	Address     string `json:"address,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"` // digest of agent and headers
	// ReportedBy is the client as which a resource server in another process has told of the step. "": none has.
	ReportedBy string `json:"reported_by,omitempty"`
}

// The prefixes of keys in the store.
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

// strong are the keys that no other attempt has.
func (k Keys) strong() []string {
	return keyed(keyThread, k.Thread, keyCode, k.Code, keyGrant, k.Grant)
}

// all are the keys by which a step is found.
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
func (s Step) failed() bool { return s.Answer.Error != "" || s.Answer.Status >= 400 }

// issued reports whether the client got tokens.
func (s Step) issued() bool { return s.Kind == Token && s.Answer.Status == 200 && s.Answer.Error == "" }

// param is a parameter of the request.
func (s Step) param(name string) string { return value(s.Request.Params, name) }

// sent is a parameter that the browser was sent away with.
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
	// maxStep bounds a step in the store, in bytes, and maxSteps those of one attempt: 64 KiB together.
	maxStep  = 2 << 10
	maxSteps = 32
)

// encode is the step as it is stored. One that is too large loses first what says the least.
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

// cut bounds text that others chose, in bytes, and leaves it valid.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}

// short is the key of a client id, which may be long: its first bytes and its last, which differ
// between registrations.
func short(id string) string {
	if len(id) <= 80 {
		return id
	}
	return strings.ToValidUTF8(id[:40]+id[len(id)-40:], "?")
}
