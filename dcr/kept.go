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

// maxDocumentText limits how many bytes of a document are kept to show to an administrator.
const maxDocumentText = 8 << 10

// Document describes the state of a client metadata document in this process. Each replica fetches
// documents for itself.
type Document struct {
	URL string
	// ReadAt is when the document was last fetched or confirmed unchanged. After ReadAgainAt the
	// next request fetches it again.
	ReadAt, ReadAgainAt time.Time
	// SHA256 is the hex digest of the document and Size its length in bytes. Text is its beginning,
	// without characters that could mislead a reader.
	SHA256 string
	Size   int
	Text   string
	// Problem is why the document is unusable, or "".
	Problem string
	// FailedAt is the time of a failed fetch since the last successful one, or zero.
	FailedAt time.Time
	Failure  string
}

// text describes the content of a document.
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

// failure records when and why a fetch failed.
type failure struct {
	at  time.Time
	why string
}

// Document returns the cached state of the document at a URL and whether there is any. It fetches
// nothing.
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

// DocumentRule returns the trust decision for the document at a URL and the matching pattern. The
// pattern is "" if the decision is the default for other documents.
func (r *Registry) DocumentRule(id string) (Trust, string) { return r.docs.cfg.Trust.rule(id) }

// rule returns the decision of Of and the pattern that matched.
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
