package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sentence is a catalogue text with the values of its placeholders.
type Sentence struct {
	Key    string // file and name: "login.wrong"
	Values []any  // name and value pairs; a time.Time is localized
	Count  int    // selects the plural form
}

// Say returns the sentence of a key.
func Say(key string, values ...any) Sentence { return Sentence{Key: key, Values: values} }

// value returns the named value in a language, or "".
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

// Spell returns a sentence in the language. The functions words and value escape the catalogue's
// words and the values. An unknown key is returned as its own text; a test searches the program for
// such keys.
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
