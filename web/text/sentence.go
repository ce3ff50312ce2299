package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sentence is a text of the catalogues with the values that its braces stand for.
type Sentence struct {
	Key    string // by file and name: "login.wrong"
	Values []any  // a name, its value, and so on; a time.Time is written as the language does
	Count  int    // what a text with plural forms depends on
}

// Say is the sentence of a key.
func Say(key string, values ...any) Sentence { return Sentence{Key: key, Values: values} }

// value is the value with a name in a language, "" for none.
func (s Sentence) value(name string, in *Language) string {
	for pair := range slices.Chunk(s.Values, 2) {
		if pair[0] != name || len(pair) < 2 {
			continue
		}
		if at, ok := pair[1].(time.Time); ok {
			return in.Moment(at)
		}
		return fmt.Sprint(pair[1])
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
			out.WriteString(value(s.value(piece.Value, l)))
		}
	}
	return out.String()
}
