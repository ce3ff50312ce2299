package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/feature/plural"
)

// Entry is one text, with one form or with plural forms.
type Entry struct {
	// Forms maps plural forms to pieces. A text without plural forms has only the form "other".
	Forms map[string][]Piece
	// Counted means that the text depends on a number.
	Counted bool
}

// Piece is a part of a text: words, or the name of a value.
type Piece struct{ Words, Value string }

// Number is the name of the value that selects the plural form.
const Number = "n"

// Other is the plural form that every text has.
const Other = "other"

var formNames = map[plural.Form]string{
	plural.Zero: "zero", plural.One: "one", plural.Two: "two", plural.Few: "few", plural.Many: "many",
	plural.Other: Other,
}

func newEntry(raw json.RawMessage) (Entry, error) {
	var whole string
	if json.Unmarshal(raw, &whole) == nil {
		pieces, err := newPieces(whole)
		return Entry{Forms: map[string][]Piece{Other: pieces}}, err
	}
	var forms map[string]string
	if json.Unmarshal(raw, &forms) != nil {
		return Entry{}, errors.New("is neither a text nor an object of plural forms")
	}
	e := Entry{Forms: make(map[string][]Piece), Counted: true}
	for form, words := range forms {
		pieces, err := newPieces(words)
		if err != nil {
			return e, fmt.Errorf("%s: %w", form, err)
		}
		e.Forms[form] = pieces
	}
	return e, nil
}

var placeholder = regexp.MustCompile(`\{([a-z][a-z0-9_]*)\}`)

// newPieces splits a text. A brace outside a placeholder is an error, because templates would
// interpret two of them.
func newPieces(words string) (out []Piece, err error) {
	if strings.TrimSpace(words) == "" {
		return nil, errors.New("is empty")
	}
	at := 0
	literal := func(s string) {
		if strings.ContainsAny(s, "{}") {
			err = fmt.Errorf("has a brace outside a {name} in %q", s)
		}
		if s != "" {
			out = append(out, Piece{Words: s})
		}
	}
	for _, m := range placeholder.FindAllStringSubmatchIndex(words, -1) {
		literal(words[at:m[0]])
		out = append(out, Piece{Value: words[m[2]:m[3]]})
		at = m[1]
	}
	literal(words[at:])
	return out, err
}

// Values returns the names of the values in a text, sorted.
func (e Entry) Values() []string {
	names := make(map[string]bool)
	for _, form := range e.Forms {
		for _, p := range form {
			if p.Value != "" {
				names[p.Value] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Form returns the plural form for a number.
func (l *Language) Form(n int) string {
	const digits = 1_000_000 // the rules depend only on the last six digits
	if n < 0 {
		n = -n
	}
	if n >= digits {
		n = digits + n%digits
	}
	return formNames[plural.Cardinal.MatchPlural(l.tag, n, 0, 0, 0, 0)]
}

// In returns the pieces of the text for a plural form.
func (e Entry) In(form string) []Piece {
	if p, ok := e.Forms[form]; ok {
		return p
	}
	return e.Forms[Other]
}

// forms returns the plural forms of the language.
func (l *Language) forms() map[string]bool {
	out := map[string]bool{Other: true}
	for n := range 201 {
		out[l.Form(n)] = true
	}
	out[l.Form(1_000_000)] = true
	return out
}
