package form

import (
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

func TestMaxAge(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"0": 0, "60": time.Minute, "007": 7 * time.Second,
		"1000000000": 1_000_000_000 * time.Second, "99999999999999999999": 1 << 30 * time.Second,
	} {
		if age, ok, err := New(url.Values{"max_age": {value}}).MaxAge(); age != want || !ok || err != nil {
			t.Errorf("AS-238 max_age=%s: got %v, %v, %v", value, age, ok, err)
		}
	}
	if _, ok, err := New(url.Values{"max_age": {""}}).MaxAge(); ok || err != nil {
		t.Errorf("AS-08 without a value: got %v, %v", ok, err)
	}
	for _, value := range []string{"-1", "x", "1e9", "1.5", "+60", " 60", "0x10", "٣"} {
		_, ok, err := New(url.Values{"max_age": {value}}).MaxAge()
		var refused *oauth.Error
		if ok || !errors.As(err, &refused) || refused.Code != oauth.InvalidRequest {
			t.Errorf("AS-238 max_age=%q: got %v, %v", value, ok, err)
		}
	}
}
