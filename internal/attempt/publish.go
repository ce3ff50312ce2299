package attempt

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// publisher reduces an attempt to data that can be published (OB-03). It keeps texts in the
// vocabulary. Every other text becomes a placeholder, the same one for equal texts.
type publisher struct {
	own   []string                     // hosts that are never kept
	given map[string]map[string]string // placeholders, by kind and text
}

// name returns the placeholder for a text.
func (p *publisher) name(kind, value string) string {
	if value == "" {
		return ""
	}
	if p.given[kind] == nil {
		p.given[kind] = map[string]string{}
	}
	if _, known := p.given[kind][value]; !known {
		p.given[kind][value] = fmt.Sprintf("%s-%d", kind, len(p.given[kind])+1)
	}
	return p.given[kind][value]
}

// The forms of redacted values from redact.go.
var (
	counted   = regexp.MustCompile(`^\([0-9]{1,7} characters\)$`)
	digestOf  = regexp.MustCompile(`^(\([0-9]{1,7} characters, )digest ([0-9a-f]{0,64})\)$`)
	malformed = regexp.MustCompile(`^\([0-9]{1,7} characters, not an? (S256 challenge|verifier: byte [0-9]{1,7} is ` +
		`0x[0-9a-f]{2}|verifier: it must have 43 to 128)\)$`)
	challengeOf = regexp.MustCompile(`^(of the challenge )?([A-Za-z0-9_-]{1,8})\.\.\.$`)
	number      = regexp.MustCompile(`^[0-9]{1,6}$`)
)

func (p *publisher) params(all []Param) (out []Param) {
	for _, param := range all {
		if v, ok := p.param(param); ok {
			out = append(out, Param{param.Name, v})
		}
	}
	return out
}

func (p *publisher) param(of Param) (string, bool) {
	name, v := of.Name, of.Value
	switch {
	case name == "client_id":
		return p.client(v), true
	case name == "scope":
		return p.scopes(v), true
	case name == "code_challenge", name == "code_verifier":
		if m := challengeOf.FindStringSubmatch(v); m != nil {
			return m[1] + p.name("challenge", m[2]), true
		}
		return p.unless(malformed, v), true
	case name == paramToken:
		return string(only(tokenStates, TokenState(v))), true
	case name == paramTool:
		return p.name("tool", v), true
	case name == paramMethod:
		return p.values(v), true
	case slices.Contains(addresses, name):
		return p.url(v), true
	case slices.Contains(digested, name):
		if m := digestOf.FindStringSubmatch(v); m != nil {
			return m[1] + p.name(name, m[2]) + ")", true
		}
		return p.name("value", v), true
	case slices.Contains(given, name):
		return p.unless(counted, v), true
	case name == others:
		return p.unless(number, v), true
	case slices.Contains(plain, name):
		return p.values(v), true
	}
	return "", false
}

// unless returns v if it matches form, and a placeholder otherwise.
func (p *publisher) unless(form *regexp.Regexp, v string) string {
	if form.MatchString(v) {
		return v
	}
	return p.name("value", v)
}

func (p *publisher) scopes(v string) string {
	var out []string
	for scope := range strings.FieldsSeq(v) {
		if !slices.Contains(public().Values, scope) {
			scope = p.name("scope", scope)
		}
		out = append(out, scope)
	}
	return strings.Join(out, " ")
}

// values filters the space-separated values of a parameter.
func (p *publisher) values(v string) string {
	var out []string
	for value := range strings.FieldsSeq(v) {
		if !slices.Contains(public().Values, value) && !number.MatchString(value) {
			value = p.name("value", value)
		}
		out = append(out, value)
	}
	return strings.Join(out, " ")
}

// client filters a client ID. The ID of a metadata document is a URL.
func (p *publisher) client(id string) string {
	if strings.HasPrefix(id, "https://") {
		return p.url(id)
	}
	return p.name("client", id)
}

// title filters the name of a client.
func (p *publisher) title(v string) string {
	if slices.Contains(public().Names, v) {
		return v
	}
	return p.name("application", v)
}

var versioned = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_-]{0,40})(/[0-9]{1,6}(\.[0-9]{1,6}){0,3})?$`)

// agent filters the first product of a User-Agent (RFC 9110 §10.1.5).
func (p *publisher) agent(v string) string {
	m := versioned.FindStringSubmatch(v)
	if m != nil && slices.Contains(public().Products, strings.ToLower(m[1])) {
		return v
	}
	return p.name("agent", v)
}

// url filters an address, whose query oauth.Redacted has already removed.
func (p *publisher) url(v string) string {
	u, err := url.Parse(v)
	if v == "" || v == oauth.NotURL {
		return v
	}
	if err != nil || u.Scheme == "" {
		return p.name("value", v)
	}
	out := u.Scheme
	if !slices.Contains(public().Schemes, u.Scheme) {
		out = p.name("scheme", u.Scheme)
	}
	if u.Opaque != "" {
		return out + ":..."
	}
	out += "://"
	if u.User != nil {
		out += "...@"
	}
	out += p.host(u) + p.path(u.EscapedPath())
	if u.RawQuery != "" {
		out += "?..."
	}
	if u.Fragment != "" {
		out += "#..."
	}
	return out
}

// host keeps loopback hosts, and the hosts of well-known clients.
func (p *publisher) host(u *url.URL) string {
	host, port := u.Hostname(), u.Port()
	addr, err := netip.ParseAddr(host)
	switch {
	case host == "":
		return ""
	case err == nil && addr.IsLoopback() && addr.Is6():
		host = "[::1]"
	case err == nil && addr.IsLoopback():
		host = "127.0.0.1"
	case host == "localhost":
	case slices.Contains(public().Hosts, host) && !slices.Contains(p.own, host):
	default:
		host = p.name("host", host) + ".example"
	}
	if number.MatchString(port) {
		host += ":" + port
	}
	return host
}

// path filters each segment.
func (p *publisher) path(v string) string {
	segments := strings.Split(v, "/")
	for i, segment := range segments {
		if !passed(segment) {
			segments[i] = p.name("part", segment)
		}
	}
	return strings.Join(segments, "/")
}

var (
	pathWord   = regexp.MustCompile(`[A-Za-z0-9]+`)
	betweenTwo = regexp.MustCompile(`^[._~-]*$`)
)

// passed reports whether a segment consists only of common words.
func passed(segment string) bool {
	if !betweenTwo.MatchString(pathWord.ReplaceAllString(segment, "")) {
		return false
	}
	for _, w := range pathWord.FindAllString(segment, -1) {
		if !common(w) {
			return false
		}
	}
	return true
}

func common(w string) bool {
	return slices.Contains(public().Segments, w) || len(w) < 6 && number.MatchString(w)
}

// quotation matches a quoted text between spaces or punctuation.
var quotation = regexp.MustCompile(`(^|[\s(:])["']([^"']*)["']($|[\s).,:;])`)

// sentence filters a description. A quoted text becomes a filtered address or a placeholder, and
// only words of this server's own sentences are kept.
func (p *publisher) sentence(v string) string {
	var out strings.Builder
	for {
		at := quotation.FindStringSubmatchIndex(v)
		if at == nil {
			break
		}
		out.WriteString(p.words(v[:at[3]]))
		out.WriteString(`"` + p.quoted(v[at[4]:at[5]]) + `"`)
		v = v[at[6]:]
	}
	out.WriteString(p.words(v))
	return out.String()
}

func (p *publisher) quoted(v string) string {
	switch {
	case strings.Contains(v, "://"):
		return p.url(v)
	case sentenceWords()[strings.ToLower(v)]:
		return v
	}
	return p.name("value", v)
}

// unknownWord replaces a word that is not in the vocabulary.
const unknownWord = "[...]"

func (p *publisher) words(v string) string {
	if v == "" {
		return v
	}
	fields := strings.Split(v, " ")
	for i, field := range fields {
		inner := strings.Trim(field, `().,:;"'`)
		for part := range strings.SplitSeq(inner, "-") {
			if part != "" && !number.MatchString(part) && !sentenceWords()[strings.ToLower(part)] {
				fields[i] = strings.Replace(field, inner, unknownWord, 1)
			}
		}
	}
	return strings.Join(fields, " ")
}

// difference filters a Difference. It keeps common words and replaces others with their shape.
func (p *publisher) difference(d *Difference) *Difference {
	if d == nil {
		return nil
	}
	return &Difference{At: d.At, Got: shape(d.Got), Want: shape(d.Want)}
}

var notPlain = regexp.MustCompile(`[^A-Za-z0-9:/?#\[\]@!$&()*+,;=._~%-]`)

// shape replaces letters and digits with x, X and 0, except in common words.
func shape(v string) string {
	return pathWord.ReplaceAllStringFunc(notPlain.ReplaceAllString(v, "?"), func(w string) string {
		if common(w) {
			return w
		}
		return strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z':
				return 'x'
			case r >= 'A' && r <= 'Z':
				return 'X'
			}
			return '0'
		}, w)
	})
}

// step returns the parts of a step that can be published. Fields that are not listed here are
// dropped.
func (p *publisher) step(s Step) Step {
	out := Step{
		Reference: p.reference(s.Reference),
		At:        s.At,
		Kind:      only(kinds, s.Kind),
		Request: Request{
			Method: p.method(s.Request.Method),
			Path:   p.path(s.Request.Path),
			Params: p.params(s.Request.Params),
			Agent:  p.agent(s.Request.Agent),
			Header: headers(s.Request.Header),
		},
		Answer: Answer{
			Status:      s.Answer.Status,
			Took:        s.Answer.Took,
			Error:       p.values(s.Answer.Error),
			Description: p.sentence(s.Answer.Description),
			Reason:      p.sentence(s.Answer.Reason),
			Cause:       only(causes, s.Answer.Cause),
			Outcome:     p.values(s.Answer.Outcome),
			Page:        p.words(s.Answer.Page),
			To:          p.url(s.Answer.To),
			Params:      p.params(s.Answer.Params),
		},
		Keys: Keys{
			Client:     p.client(s.Keys.Client),
			ClientName: p.title(s.Keys.ClientName),
			PersonName: p.name("person", cmp.Or(s.Keys.Person, s.Keys.PersonName)),
			Resource:   p.url(s.Keys.Resource),
			Match:      p.sentence(s.Keys.Match),
			Grant:      p.name("grant", s.Keys.Grant),
			Thread:     p.name("request", s.Keys.Thread),
			Code:       p.name("code", s.Keys.Code),
			Address:    p.name("address", s.Keys.Address),
			ReportedBy: p.client(s.Keys.ReportedBy),
		},
	}
	for _, e := range s.Expected {
		out.Expected = append(out.Expected, p.expected(e))
	}
	return out
}

// only returns v if it is in few.
func only[T ~string](few []T, v T) T {
	if slices.Contains(few, v) {
		return v
	}
	return ""
}

func headers(sent []string) (out []string) {
	for _, name := range slices.Concat(telling, passedOn) {
		if name = strings.ToLower(name); slices.Contains(sent, name) {
			out = append(out, name)
		}
	}
	return out
}

func (p *publisher) expected(e Expected) Expected {
	out := Expected{Name: p.sentence(e.Name), Difference: p.difference(e.Difference)}
	for _, v := range e.Values {
		if strings.HasPrefix(v, "/") {
			out.Values = append(out.Values, p.path(v))
			continue
		}
		out.Values = append(out.Values, p.url(v))
	}
	return out
}

func (p *publisher) method(v string) string {
	if v == "GET" || v == "POST" {
		return v
	}
	return p.name("method", v)
}

func (p *publisher) reference(v string) string {
	if r, ok := ParseReference(v); ok && r == v {
		return v
	}
	return p.name("reference", v)
}
