package text

import (
	"strconv"
	"strings"
	"time"
)

// Moment is a time as people read it, in UTC, which it names: neither a page nor a letter knows where
// its reader is.
func (l *Language) Moment(at time.Time) string { return l.date("date.moment", at) }

// Day is the day of a time, in UTC.
func (l *Language) Day(at time.Time) string { return l.date("date.day", at) }

func (l *Language) date(key string, at time.Time) string {
	same := func(s string) string { return s }
	at = at.UTC()
	return l.Spell(Say(key,
		"day", strconv.Itoa(at.Day()), "year", strconv.Itoa(at.Year()), "time", at.Format("15:04"),
		"month", l.Spell(Say("date."+strings.ToLower(at.Month().String())), same, same),
	), same, same)
}
