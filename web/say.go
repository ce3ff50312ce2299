package web

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-authd/mcp-authd/web/text"
)

// Text is a sentence that code gives to a page: a key of the catalogues with its values, or words
// as they came from elsewhere. The zero value is nothing.
type Text struct {
	key    string
	values []string // a name, its value, and so on
	count  int
	given  string
	told   bool // given is English of ours, which the catalogues may have
}

// Say is the text of a key ("login.wrong"), with the names and values that its braces stand for.
func Say(key string, values ...string) Text { return Text{key: key, values: values} }

// Count is Say for a text with plural forms.
func Count(key string, n int, values ...string) Text { return Text{key: key, count: n, values: values} }

// Given is a text that is shown as it is: in the language in which it came.
func Given(s string) Text { return Text{given: s} }

// Told is the description of a protocol error, or another English sentence of this server that does
// not come from the catalogues: the page is in the language of its reader where file refusal has
// the sentence, and shows it as it is otherwise.
func Told(s string) Text { return Text{given: s, told: true} }

// text is a sentence for a page: a Text, or words as they are.
func (p *Pages) text(v any) (any, error) {
	switch v := v.(type) {
	case Text:
		return p.html(v), nil
	case string:
		return cleanText(v), nil
	}
	return nil, fmt.Errorf("%T is no text", v)
}

// plural reports whether a number takes a plural form.
func (p *Pages) plural(form string, n int) bool { return p.language.Form(n) == form }

// html is a text as it stands in a page, cleaned and escaped; "" for nothing. A value stands in
// <bdi>, and so do words from elsewhere.
func (p *Pages) html(t Text) template.HTML {
	t = p.recognize(t)
	switch s := cleanText(t.given); {
	case t.key != "":
	case s == "":
		return ""
	case t.told && p.language.Tag != text.Default:
		return `<bdi lang="en">` + template.HTML(template.HTMLEscapeString(s)) + "</bdi>" // #nosec G203 -- escaped
	default:
		return element("bdi", "", s)
	}
	return template.HTML(p.spell(t, template.HTMLEscapeString, func(v string) string { // #nosec G203 -- escaped here
		return string(element("bdi", "", cleanText(v)))
	}))
}

// Plain is a text without elements, as it stands in a title.
func (p *Pages) Plain(t Text) string {
	if t = p.recognize(t); t.key == "" {
		return cleanText(t.given)
	}
	return p.spell(t, func(s string) string { return s }, cleanText)
}

// recognize finds the text that an English sentence of ours is in the catalogues.
func (p *Pages) recognize(t Text) Text {
	if !t.told || p.language.Tag == text.Default {
		return t
	}
	if key, values, ok := p.texts.Recognize(t.given); ok {
		return Say(key, values...)
	}
	return t
}

func (p *Pages) spell(t Text, words, value func(string) string) string {
	entry, ok := p.language.Entry(t.key)
	if !ok {
		return words(t.key) // a test reads the program for keys that do not exist
	}
	var out strings.Builder
	for _, piece := range entry.In(p.language.Form(t.count)) {
		switch {
		case piece.Value == "":
			out.WriteString(words(piece.Words))
		case piece.Value == text.Number && entry.Counted:
			out.WriteString(strconv.Itoa(t.count))
		default:
			out.WriteString(value(t.value(piece.Value)))
		}
	}
	return out.String()
}

func (t Text) value(name string) string {
	for pair := range slices.Chunk(t.values, 2) {
		if pair[0] == name && len(pair) == 2 {
			return pair[1]
		}
	}
	return ""
}

// element is text in an element of its own.
func element(tag, class, s string) template.HTML {
	open := "<" + tag
	if class != "" {
		open += ` class="` + class + `"`
	}
	return template.HTML(open + ">" + template.HTMLEscapeString(s) + "</" + tag + ">") // #nosec G203 -- escaped here
}

// strong, code and host are values in elements of their own; in <bdi>, as every value is.
func strong(s string) template.HTML { return "<strong>" + element("bdi", "", s) + "</strong>" }

func code(s string) template.HTML { return "<code>" + element("bdi", "", s) + "</code>" }

func host(s string) template.HTML { return element("bdi", "host", s) }
