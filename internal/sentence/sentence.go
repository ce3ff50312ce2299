// Package sentence has the English sentences that clients and users both see. A client gets the
// English text. A page shows it in the language of its user, if the sentence has a key. A protocol
// error made from a sentence carries the sentence to the page.
package sentence

import (
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// File is the file of the catalogues that contains the sentences.
const File = "refusal"

// Sentence is an English text, and its key in the catalogues. The zero value is empty.
type Sentence struct {
	english string
	name    string // in File, or ""
	values  []string
}

// New returns a sentence. Its English text is the same as the text called name in file [File] of
// the English catalogue; a test compares them. Without a name, every page shows the English text.
// The values are pairs of a placeholder's name and its value.
func New(english, name string, values ...string) Sentence { return Sentence{english, name, values} }

// With returns s with values.
func (s Sentence) With(values ...string) Sentence { return Sentence{s.english, s.name, values} }

// Key returns the key in the catalogues ("refusal.denied"), or "" if there is no translation.
func (s Sentence) Key() string {
	if s.name == "" {
		return ""
	}
	return File + "." + s.name
}

// Values returns the pairs of a placeholder's name and its value.
func (s Sentence) Values() (out []any) {
	for _, v := range s.values {
		out = append(out, v)
	}
	return out
}

// String returns the English text with its values.
func (s Sentence) String() string {
	var pairs []string
	for i := 0; i+1 < len(s.values); i += 2 {
		pairs = append(pairs, "{"+s.values[i]+"}", s.values[i+1])
	}
	return strings.NewReplacer(pairs...).Replace(s.english)
}

// Error returns a protocol error that carries s, with the English text as its description.
func (s Sentence) Error(code oauth.Code) *oauth.Error {
	return oauth.NewError(code, s.String()).Because(&carried{s, nil})
}

// NewError returns a protocol error that carries a sentence. See [New] for its arguments.
func NewError(code oauth.Code, english, name string, values ...string) *oauth.Error {
	return New(english, name, values...).Error(code)
}

// Of returns the sentence that e carries. For any other error it returns the description, as a
// sentence without a key.
func Of(e *oauth.Error) Sentence {
	if c, ok := e.Unwrap().(*carried); ok {
		return c.Sentence
	}
	return New(e.Description, "")
}

// Cause returns the cause of e, or nil. The sentence that e carries is not a cause.
func Cause(e *oauth.Error) error {
	if c, ok := e.Unwrap().(*carried); ok {
		return c.cause
	}
	return e.Unwrap()
}

// carried is the outermost cause of an error that carries a sentence. It adds nothing to logs.
type carried struct {
	Sentence
	cause error
}

// Because returns c around another cause. See [oauth.Error.Because].
func (c *carried) Because(cause error) error { return &carried{c.Sentence, cause} }

// Error returns the text of the wrapped cause, or "".
func (c *carried) Error() string {
	if c.cause == nil {
		return ""
	}
	return c.cause.Error()
}

// Unwrap returns the wrapped cause.
func (c *carried) Unwrap() error { return c.cause }
