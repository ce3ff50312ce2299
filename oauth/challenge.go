package oauth

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// BearerChallenge is a WWW-Authenticate value in which a resource server states its requirements
// (RFC 6750 §3, RFC 9728 §5.1, RFC 9470 §3, RS-15). Empty members are left out. Error must be empty
// if the request had no credentials (RFC 6750 §3.1).
type BearerChallenge struct {
	Error            Code
	Description      string
	Scope            Scopes
	ACRValues        []string      // RFC 9470 §3: any one of these is enough
	MaxAge           time.Duration // RFC 9470 §3, in whole seconds; 0 means no limit
	ResourceMetadata string        // absolute URL of the RFC 9728 document
}

// String returns the header value. It begins with exactly "Bearer ", and parameter values contain
// no quotes or backslashes, because clients parse it naively.
func (c BearerChallenge) String() string { return c.compose("Bearer", "") }

// DPoPChallenge is the challenge for tokens bound to a key of the client (RFC 9449 §7.1). A server
// that accepts both kinds of token sends both challenges, each in its own header.
type DPoPChallenge struct {
	BearerChallenge
	Algorithms []string // of proofs, most preferred first
}

// String returns the header value.
func (c DPoPChallenge) String() string {
	return c.compose("DPoP", strings.Join(c.Algorithms, " "))
}

func (c BearerChallenge) compose(scheme, algorithms string) string {
	var b strings.Builder
	b.WriteString(scheme + " ")
	sep := ""
	add := func(name, value string) {
		if value == "" {
			return
		}
		b.WriteString(sep + name + `="` + SafeDescription(value) + `"`)
		sep = ", "
	}
	add("error", string(c.Error))
	add("error_description", strings.ReplaceAll(c.Description, ",", ";"))
	add("scope", c.Scope.String())
	add("acr_values", strings.Join(c.ACRValues, " "))
	if c.MaxAge > 0 {
		add("max_age", strconv.FormatInt(int64(c.MaxAge/time.Second), 10))
	}
	add("algs", algorithms)
	add("resource_metadata", c.ResourceMetadata)
	return b.String()
}

// Challenge is one challenge of a WWW-Authenticate header (RFC 9110 §11.6.1).
type Challenge struct {
	Scheme string            // as sent; compare case-insensitively
	Token  string            // the token68 form, or ""
	Params map[string]string // keys are lower-case names
}

// ErrChallenge means that a WWW-Authenticate header is not well-formed.
var ErrChallenge = errors.New("oauth: malformed WWW-Authenticate")

// maxChallenge limits the total length of the header values that are parsed, in bytes.
const maxChallenge = 16 << 10

// ParseChallenges parses the values of WWW-Authenticate. Several challenges may be in one value or
// in several, with parameters in any order, quoted or not, and white space anywhere that RFC 9110
// allows. It returns ErrChallenge for malformed values and for a repeated parameter within a
// challenge (CL-01).
func ParseChallenges(values []string) ([]Challenge, error) {
	var out []Challenge
	total := 0
	for _, v := range values {
		if total += len(v); total > maxChallenge {
			return nil, ErrChallenge
		}
		var err error
		if out, err = (&challengeParser{in: v}).parse(out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

type challengeParser struct {
	in  string
	pos int
}

// parse reads a list whose elements are either a new challenge or a parameter of the current one.
// The text after a token decides which.
func (p *challengeParser) parse(out []Challenge) ([]Challenge, error) {
	current := -1
	for {
		p.skip(" \t,")
		if p.pos == len(p.in) {
			return out, nil
		}
		name := p.token()
		if name == "" {
			return nil, ErrChallenge
		}
		if current >= 0 && p.isParam() {
			if err := p.param(&out[current], name); err != nil {
				return nil, err
			}
			continue
		}
		out = append(out, Challenge{Scheme: name, Params: map[string]string{}})
		current = len(out) - 1
		if p.pos < len(p.in) && p.in[p.pos] != ' ' && p.in[p.pos] != '\t' && p.in[p.pos] != ',' {
			return nil, ErrChallenge
		}
		p.skip(" \t")
		p.token68(&out[current])
	}
}

// isParam reports whether the token just read is a parameter name.
func (p *challengeParser) isParam() bool {
	i := p.pos
	for i < len(p.in) && (p.in[i] == ' ' || p.in[i] == '\t') {
		i++
	}
	return i < len(p.in) && p.in[i] == '='
}

func (p *challengeParser) param(c *Challenge, name string) error {
	p.skip(" \t")
	p.pos++ // the equals sign that isParam has seen
	p.skip(" \t")
	value, ok := p.value()
	name = strings.ToLower(name)
	if _, dup := c.Params[name]; !ok || dup || c.Token != "" { // token68 and parameters exclude each other
		return ErrChallenge
	}
	c.Params[name] = value
	p.skip(" \t")
	if p.pos < len(p.in) && p.in[p.pos] != ',' {
		return ErrChallenge
	}
	return nil
}

func (p *challengeParser) value() (string, bool) {
	if p.pos >= len(p.in) || p.in[p.pos] != '"' {
		v := p.token()
		return v, v != ""
	}
	var b strings.Builder
	for p.pos++; p.pos < len(p.in); p.pos++ {
		switch c := p.in[p.pos]; c {
		case '"':
			p.pos++
			return b.String(), true
		case '\\':
			if p.pos++; p.pos == len(p.in) {
				return "", false
			}
			b.WriteByte(p.in[p.pos])
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// token68 consumes the single-value form of a challenge, if present.
func (p *challengeParser) token68(c *Challenge) {
	end := p.pos
	for end < len(p.in) && (isTokenChar(p.in[end]) || p.in[end] == '/') {
		end++
	}
	body := end
	for end < len(p.in) && p.in[end] == '=' {
		end++
	}
	rest := strings.TrimLeft(p.in[end:], " \t")
	if body == p.pos || rest != "" && rest[0] != ',' {
		return
	}
	c.Token, p.pos = p.in[p.pos:end], end
}

func (p *challengeParser) skip(set string) {
	for p.pos < len(p.in) && strings.IndexByte(set, p.in[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *challengeParser) token() string {
	start := p.pos
	for p.pos < len(p.in) && isTokenChar(p.in[p.pos]) {
		p.pos++
	}
	return p.in[start:p.pos]
}

// isTokenChar reports whether c is a tchar (RFC 9110 §5.6.2).
func isTokenChar(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}
