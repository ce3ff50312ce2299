package console

import (
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/label"
)

// ago returns a relative time, such as "5 minutes ago".
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

// exactly returns the date and time, and for recent times also the relative time.
func exactly(at, now time.Time) string {
	day := at.UTC().Format("2 Jan 2006, 15:04 UTC")
	if d := now.Sub(at).Abs(); d < 14*24*time.Hour {
		return day + " (" + ago(at, now) + ")"
	}
	return day
}

// after returns a time difference.
func after(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("+%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("+%.1f s", d.Seconds())
	}
	return "+" + d.Round(time.Second).String()
}

// counted returns a number with its noun, with thousands separated.
func counted(n int, one, many string) string {
	return grouped(n) + " " + label.Noun(n, one, many)
}

// grouped returns a number with thousands separated.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
