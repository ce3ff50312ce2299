package provider

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// FuzzHealth: in any order of events, only several sessions without an answer cause a provider to
// be left alone. Meanwhile one question per second is allowed.
func FuzzHealth(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 0x43, 0x83, 0x43})
	f.Add([]byte{0x40, 0x41, 0x42, 0xc1, 0x43, 0x03, 0x80, 0x44})
	f.Fuzz(func(t *testing.T, script []byte) {
		h, now := NewHealth(), time.Unix(1e9, 0)
		failing, lastAsked := map[string]bool{}, time.Time{}
		for _, step := range script {
			session := string('a' + rune(step&7))
			switch step >> 6 {
			case 0:
				h.Failed(session, now)
				failing[session] = true
			case 1:
				asked := h.Ask(session, now)
				resting := now.Before(h.restUntil)
				if resting && len(failing) < tolerated {
					t.Fatalf("rests after %d sessions", len(failing))
				}
				if resting && asked && now.Sub(lastAsked) < probeEvery && now.Sub(lastAsked) >= 0 &&
					!lastAsked.IsZero() {
					t.Fatal("two questions within a second")
				}
				if asked && resting {
					lastAsked = now
				}
			case 2:
				h.Answered(session)
				failing, lastAsked = map[string]bool{}, time.Time{}
				if !h.MayAsk(session, now) {
					t.Fatal("an answer did not end the rest")
				}
			case 3:
				h.Postponed("other", now, time.Minute)
				now = now.Add(time.Duration(step&63) * 100 * time.Millisecond)
			}
		}
	})
}

// FuzzRetryAfter: a wait is never negative, whatever a provider demands.
func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"", "0", "5", "-1", "99999999999999999999", "Mon, 02 Jan 2056 15:04:05 GMT", "1e9"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, after, reset string) {
		h := http.Header{"Retry-After": {after}, "X-Ratelimit-Reset": {reset}}
		if d := askedTooOften(h).Wait; d < 0 {
			t.Errorf("left alone for %v", d)
		}
	})
}

// TestWhenToAskAgain: RFC 9110 §10.2.3. A provider gives the wait in seconds or as a date. GitHub
// uses seconds since the epoch.
func TestWhenToAskAgain(t *testing.T) {
	soon := time.Now().Add(100 * time.Second)
	for _, tt := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "90", 90 * time.Second},
		{"Retry-After", soon.UTC().Format(http.TimeFormat), 100 * time.Second},
		{"X-RateLimit-Reset", fmt.Sprint(soon.Unix()), 100 * time.Second},
		{"Retry-After", "soon", 0},
		{"Retry-After", soon.Add(-time.Hour).UTC().Format(http.TimeFormat), 0},
		{"X-RateLimit-Reset", "1", 0},
	} {
		h := http.Header{}
		h.Set(tt.name, tt.value)
		if got := askedTooOften(h).Wait; got > tt.want || got < tt.want-20*time.Second && tt.want > 0 {
			t.Errorf("%s: %s: left alone for %s, want %s", tt.name, tt.value, got, tt.want)
		}
	}
}
