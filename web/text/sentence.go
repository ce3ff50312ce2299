package text

import (
	"slices"
	"strconv"
	"strings"
)

// Sentence is a text of the catalogues with the values that its braces stand for.
type Sentence struct {
	Key    string   // by file and name: "login.wrong"
	Values []string // a name, its value, and so on
	Count  int      // what a text with plural forms depends on
}

// Say is the sentence of a key.
func Say(key string, values ...string) Sentence { return Sentence{Key: key, Values: values} }

// Value is the value with a name, "" for none.
func (s Sentence) Value(name string) string {
	for pair := range slices.Chunk(s.Values, 2) {
		if pair[0] == name && len(pair) == 2 {
			return pair[1]
		}
	}
	return ""
}

// Spell is a sentence in the language: words and value write what is ours, and what is given. A key
// that does not exist is its own text; a test reads the program for such.
func (l *Language) Spell(s Sentence, words, value func(string) string) string {
	entry, ok := l.Entry(s.Key)
	if !ok {
		return words(s.Key)
	}
	var out strings.Builder
	for _, piece := range entry.In(l.Form(s.Count)) {
		switch {
		case piece.Value == "":
			out.WriteString(words(piece.Words))
		case piece.Value == Number && entry.Counted:
			out.WriteString(strconv.Itoa(s.Count))
		default:
			out.WriteString(value(s.Value(piece.Value)))
		}
	}
	return out.String()
}
