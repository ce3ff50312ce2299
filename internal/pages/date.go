package pages

import (
	"html/template"
	"time"
)

// date returns a localized time, with a machine-readable attribute.
func (p *Pages) date(at time.Time) template.HTML {
	return timeElement(at, p.language.Moment(at), time.RFC3339)
}

// day returns the localized day of a time.
func (p *Pages) day(at time.Time) template.HTML {
	return timeElement(at, p.language.Day(at), time.DateOnly)
}

func timeElement(at time.Time, words, layout string) template.HTML {
	if at.IsZero() {
		return ""
	}
	return template.HTML(`<time datetime="` + at.UTC().Format(layout) + `">` + // #nosec G203 -- escaped here
		template.HTMLEscapeString(words) + `</time>`)
}

// stamp returns a time in the wording of a console page, with the exact time as its tooltip.
func stamp(at time.Time, words string) template.HTML {
	exact := at.UTC().Format("Mon 2 Jan 2006, 15:04:05 UTC")
	if words == "" {
		words = exact
	}
	program := at.UTC().Format(time.RFC3339)
	return template.HTML(`<time datetime="` + program + `" title="` + exact + `">` + // #nosec G203 -- escaped here
		template.HTMLEscapeString(cleanText(words)) + `</time>`)
}
