package web

import (
	"html/template"
	"strconv"
	"strings"
	"time"
)

// date is a moment as people read it, in UTC, which it names: pages do not know where their
// reader is. Programs read it from the attribute.
func (p *Pages) date(at time.Time) template.HTML {
	return p.moment(at, "date.moment", time.RFC3339)
}

// day is the day of a moment, in UTC.
func (p *Pages) day(at time.Time) template.HTML {
	return p.moment(at, "date.day", time.DateOnly)
}

func (p *Pages) moment(at time.Time, key, layout string) template.HTML {
	if at.IsZero() {
		return ""
	}
	at = at.UTC()
	words := p.Plain(Say(key,
		"day", strconv.Itoa(at.Day()), "year", strconv.Itoa(at.Year()), "time", at.Format("15:04"),
		"month", p.Plain(Say("date."+strings.ToLower(at.Month().String()))),
	))
	return template.HTML(`<time datetime="` + at.Format(layout) + `">` + // #nosec G203 -- escaped here
		template.HTMLEscapeString(words) + `</time>`)
}
