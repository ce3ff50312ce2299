package console

import (
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/label"
)

// ago is a moment as people tell each other, seen from now.
func ago(at, now time.Time) string {
	d := now.Sub(at)
	form := "%s ago"
	if d < 0 {
		d, form = -d, "in %s"
	}
	switch {
	case d < time.Minute:
		return map[bool]string{true: "just now", false: "in a moment"}[form[0] == '%']
	case d < time.Hour:
		return fmt.Sprintf(form, counted(int(d.Minutes()), "minute", "minutes"))
	case d < 24*time.Hour:
		return fmt.Sprintf(form, counted(int(d.Hours()), "hour", "hours"))
	case d < 14*24*time.Hour:
		return fmt.Sprintf(form, counted(int(d.Hours()/24), "day", "days"))
	}
	return at.UTC().Format("2 Jan 2006")
}

// exactly is a moment with its place among the days, and how long ago it is.
func exactly(at, now time.Time) string {
	day := at.UTC().Format("2 Jan 2006, 15:04 UTC")
	if d := now.Sub(at).Abs(); d < 14*24*time.Hour {
		return day + " (" + ago(at, now) + ")"
	}
	return day
}

// after is how long one thing came after another.
func after(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("+%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("+%.1f s", d.Seconds())
	}
	return "+" + d.Round(time.Second).String()
}

// counted is a number with its noun, and its thousands apart.
func counted(n int, one, many string) string {
	return grouped(n) + " " + label.Noun(n, one, many)
}

// grouped is a number whose thousands are apart.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
