package text

import (
	"strconv"
	"strings"
	"time"
)

// Moment returns a localized time in UTC, with its zone. Neither a page nor a mail knows the
// reader's time zone.
func (l *Language) Moment(at time.Time) string { return l.date("date.moment", at) }

// Day returns the localized day of a time, in UTC.
func (l *Language) Day(at time.Time) string { return l.date("date.day", at) }

func (l *Language) date(key string, at time.Time) string {
	same := func(s string) string { return s }
	at = at.UTC()
	return l.Spell(Say(key,
		"day", strconv.Itoa(at.Day()), "year", strconv.Itoa(at.Year()), "time", at.Format("15:04"),
		"month", l.Spell(Say("date."+strings.ToLower(at.Month().String())), same, same),
	), same, same)
}
