package web

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"time"

	"github.com/mcp-authd/mcp-authd/web/text"
)

// Text is a sentence that code gives to a page: a key of the catalogues with its values, a moment, or
// words as they came from elsewhere. The zero value is nothing.
type Text struct {
	said  text.Sentence
	at    time.Time
	given string
	told  bool // given is English of ours, which the catalogues may have
}

// Say is the text of a key ("login.wrong"), with the names and values that its braces stand for.
func Say(key string, values ...any) Text { return Text{said: text.Say(key, values...)} }

// Count is Say for a text with plural forms.
func Count(key string, n int, values ...any) Text {
	return Text{said: text.Sentence{Key: key, Count: n, Values: values}}
}

// When is a moment.
func When(at time.Time) Text { return Text{at: at} }

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
	case t.said.Key != "":
	case !t.at.IsZero():
		return p.date(t.at)
	case s == "":
		return ""
	case t.told && p.language.Tag != text.Default:
		return `<bdi lang="en">` + template.HTML(template.HTMLEscapeString(s)) + "</bdi>" // #nosec G203 -- escaped
	default:
		return element("bdi", "", s)
	}
	shown := p.language.Spell(t.said, template.HTMLEscapeString, func(v string) string {
		return string(element("bdi", "", cleanText(v)))
	})
	return template.HTML(shown) // #nosec G203 -- escaped here
}

// Plain is a text without elements, as it stands in a title.
func (p *Pages) Plain(t Text) string {
	switch t = p.recognize(t); {
	case !t.at.IsZero():
		return p.language.Moment(t.at)
	case t.said.Key == "":
		return cleanText(t.given)
	}
	return p.language.Spell(t.said, func(s string) string { return s }, cleanText)
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

// unguessable returns an id for an element of the page whose form carries step. On a page with a decision, an id
// that an address can name (#decide) would put the keyboard right before the buttons.
func unguessable(step string) string {
	sum := sha256.Sum256([]byte("element of a page\x00" + step))
	return "e" + hex.EncodeToString(sum[:8])
}
