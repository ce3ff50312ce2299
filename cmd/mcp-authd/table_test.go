package main

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestTablesFitATerminal checks that tables are truncated only on a terminal (issue 11, 4.6).
func TestTablesFitATerminal(t *testing.T) {
	long := "mcp_" + strings.Repeat("x", 160)
	for _, width := range []int{0, 80, 120} {
		var out strings.Builder
		tab := newTable(&out, "ID", "NAME", "REDIRECTS")
		tab.width = width
		tab.row(long, "Ad\x1b[2Ja", strings.Repeat("https://example.com/ ", 4))
		tab.row("short", "Äöü", "")
		if err := tab.flush(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); width > 0 && n > width {
				t.Errorf("width %d: a line has %d characters: %q", width, n, line)
			}
		}
		if strings.Contains(out.String(), long) != (width == 0) ||
			strings.Contains(out.String(), admin.CutMark) != (width > 0) || strings.Contains(out.String(), "\x1b") {
			t.Errorf("width %d: got %q", width, out.String())
		}
	}
}

func TestWhatEndsIsCounted(t *testing.T) {
	grants := []storage.Grant{{UserID: "a", ClientID: "x"}, {UserID: "b", ClientID: "x"}, {UserID: "a", ClientID: "y"}}
	all, one := admin.SomeGrants{List: grants}.Count(), admin.SomeGrants{List: grants[:1]}.Count()
	for _, tt := range []struct{ got, want string }{
		{ofPeople(all), "3 grants of 2 people"}, {ofPeople(one), "1 grant of 1 person"},
		{toApplications(all), "3 grants to 2 applications"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestMomentsAreReadable(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 30, 59, 123, time.Local)
	if got := label.Moment(at); got != "2026-11-21 12:30" {
		t.Errorf("got %q", got)
	}
	if got := label.Moment(time.Time{}); got != "never" {
		t.Errorf("got %q", got)
	}
}

// TestLogTimesAreThoseOfJSON checks the time format (usability, "Time formats: log 9 decimals, list
// none, JSON 3").
func TestLogTimesAreThoseOfJSON(t *testing.T) {
	var out strings.Builder
	newLogger(std{err: &out}, config.Log{Level: "info", Format: "json"}).Info("x", "at", time.Unix(1, 123456789))
	for _, want := range []string{
		`"time":"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`, `"at":"1970-01-01T00:00:01\.123Z"`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("got %s, want %s", out.String(), want)
		}
	}
}
