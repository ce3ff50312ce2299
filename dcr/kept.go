package dcr

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
)

// maxDocumentText is how much of the text of a document is kept for people, in bytes.
const maxDocumentText = 8 << 10

// Document is what this process knows of a client metadata document: each replica reads for itself.
type Document struct {
	URL string
	// ReadAt is when it was read last, or was found to be the same. ReadAgainAt is from when on it is read again,
	// when it is asked for.
	ReadAt, ReadAgainAt time.Time
	// SHA256 is the digest of what was read, in hex, and Size its length in bytes. Text is its beginning,
	// without what could deceive the eye.
	SHA256 string
	Size   int
	Text   string
	// Problem is why it cannot be used, "" when it can.
	Problem string
	// FailedAt is when it could not be had, since it was read last; zero: it could.
	FailedAt time.Time
	Failure  string
}

// text is what is kept of the text of a document.
type text struct {
	sha256, begin string
	size          int
}

func textOf(body []byte) text {
	sum := sha256.Sum256(body)
	begin := strings.Map(func(c rune) rune {
		if c == unicode.ReplacementChar || !unicode.IsGraphic(c) && c != '\n' && c != '\t' {
			return -1
		}
		return c
	}, string(body[:min(len(body), maxDocumentText)]))
	return text{hex.EncodeToString(sum[:]), begin, len(body)}
}

// failure is why a document could not be had, and when.
type failure struct {
	at  time.Time
	why string
}

// Document returns what is known of the document at a URL, and whether anything is. It reads nothing.
func (r *Registry) Document(id string) (Document, bool) {
	e, read := r.docs.kept(id)
	failed, not := r.docs.failed.Get(id)
	if !read && !not {
		return Document{}, false
	}
	d := Document{
		URL: id, ReadAt: e.fetched, ReadAgainAt: e.expires,
		SHA256: e.text.sha256, Size: e.text.size, Text: e.text.begin,
		FailedAt: failed.at, Failure: failed.why,
	}
	if e.err != nil {
		d.Problem = e.err.Error()
	}
	return d, true
}

// DocumentRule is what is thought of the document at a URL, and the pattern of the policy that says so, "" where
// it is what counts for all others.
func (r *Registry) DocumentRule(id string) (Trust, string) { return r.docs.cfg.Trust.rule(id) }

// rule is Of with the pattern that decides.
func (p TrustPolicy) rule(id string) (Trust, string) {
	u, err := url.Parse(id)
	if err != nil {
		return TrustDeny, ""
	}
	if i := slices.IndexFunc(p.Deny, func(pattern string) bool { return denies(pattern, u) }); i >= 0 {
		return TrustDeny, p.Deny[i]
	}
	if i := slices.IndexFunc(p.Allow, func(pattern string) bool { return allows(pattern, id, u) }); i >= 0 {
		return TrustAllow, p.Allow[i]
	}
	if p.Others == "" {
		return TrustAsk, ""
	}
	return p.Others, ""
}
