package pages

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/text"
)

// Text is a sentence for a page from code: a catalogue key with its values, a time, or a text from
// elsewhere. The zero value is empty.
type Text struct {
	said  text.Sentence
	at    time.Time
	given string
	told  bool // given is the English text of a sentence whose translation is said, if there is one
}

// Say returns the text of a key ("login.wrong"). The values are pairs of a placeholder's name and
// its value.
func Say(key string, values ...any) Text { return Text{said: text.Say(key, values...)} }

// Count is Say for a text with plural forms.
func Count(key string, n int, values ...any) Text {
	return Text{said: text.Sentence{Key: key, Count: n, Values: values}}
}

// When returns a time as a Text.
func When(at time.Time) Text { return Text{at: at} }

// Given returns a text that is shown unchanged, in its original language.
func Given(s string) Text { return Text{given: s} }

// Told returns a sentence that clients see in English. Pages in English show the same text. Other
// pages show the translation, if there is one.
func Told(s sentence.Sentence) Text {
	return Text{said: text.Say(s.Key(), s.Values()...), given: s.String(), told: true}
}

// text returns a sentence for a page: from a Text, or from a literal string.
func (p *Pages) text(v any) (any, error) {
	switch v := v.(type) {
	case Text:
		return p.html(v), nil
	case string:
		return cleanText(v), nil
	}
	return nil, fmt.Errorf("%T must be a text", v)
}

// plural reports whether a number takes a plural form.
func (p *Pages) plural(form string, n int) bool { return p.language.Form(n) == form }

// html returns a text for the body of a page, cleaned and escaped, or "". Values and texts from
// elsewhere are put in <bdi>.
func (p *Pages) html(t Text) template.HTML {
	t = p.translate(t)
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

// Plain returns a text without elements, as for a title.
func (p *Pages) Plain(t Text) string {
	switch t = p.translate(t); {
	case !t.at.IsZero():
		return p.language.Moment(t.at)
	case t.said.Key == "":
		return cleanText(t.given)
	}
	return p.language.Spell(t.said, func(s string) string { return s }, cleanText)
}

// translate removes the translation of a Told sentence if the page is in English.
func (p *Pages) translate(t Text) Text {
	if t.told && p.language.Tag == text.Default {
		t.said = text.Sentence{}
	}
	return t
}

// element returns text in an element.
func element(tag, class, s string) template.HTML {
	open := "<" + tag
	if class != "" {
		open += ` class="` + class + `"`
	}
	return template.HTML(open + ">" + template.HTMLEscapeString(s) + "</" + tag + ">") // #nosec G203 -- escaped here
}

// strong, code and host return a value in an element, and in <bdi> like every value.
func strong(s string) template.HTML { return "<strong>" + element("bdi", "", s) + "</strong>" }

func code(s string) template.HTML { return "<code>" + element("bdi", "", s) + "</code>" }

func host(s string) template.HTML { return element("bdi", "host", s) }

// unguessable returns an element ID for the page whose form carries step. On a page with a
// decision, an ID that an address could name (#decide) would move the keyboard focus to just before
// the buttons.
func unguessable(step string) string {
	sum := sha256.Sum256([]byte("element of a page\x00" + step))
	return "e" + hex.EncodeToString(sum[:8])
}
