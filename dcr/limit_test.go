package dcr_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/dcr"
)

// fromHeader takes the client address from a header that the test sets.
func fromHeader(c *dcr.Config) {
	c.ClientAddr = func(r *http.Request) netip.Addr { a, _ := netip.ParseAddr(r.Header.Get("Test-Addr")); return a }
}

// long is a registration that needs a row.
var long = `{"redirect_uris":["https://a.example/` + strings.Repeat("x", 600) + `"]}`

// Protocol 2.2, AS-144: a registration that costs more than one is charged once. It is admitted
// after the wait that the server demanded.
func TestWaitingAsTold(t *testing.T) {
	for _, total := range []bool{false, true} {
		r := newRig(t, fromHeader, func(c *dcr.Config) { c.Limits = dcr.Limits{PerMinute: 60, Burst: 15} })
		address := func(i int) string {
			if total {
				return fmt.Sprintf("198.51.%d.1", i%250) // each network has enough allowance, all together do not
			}
			return "192.0.2.1"
		}
		refused := 0
		for i := range 32*15 + 30 {
			w := r.send("POST", long, "Test-Addr", address(i))
			if w.Code == http.StatusCreated {
				r.pass(10 * time.Millisecond)
				continue
			}
			refused++
			wait, err := strconv.Atoi(w.Header().Get("Retry-After"))
			if w.Code != http.StatusTooManyRequests || err != nil || wait < 1 || wait > 20 {
				t.Fatalf("got %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
			}
			r.pass(time.Duration(wait) * time.Second)
			if w := r.send("POST", long, "Test-Addr", address(i)); w.Code != http.StatusCreated {
				t.Fatalf("total %v: after waiting %d s as told: got %d, Retry-After %q", total, wait, w.Code,
					w.Header().Get("Retry-After"))
			}
			if refused == 3 {
				break
			}
		}
		if refused != 3 {
			t.Errorf("total %v: %d were asked to wait, want 3", total, refused)
		}
	}
}

// Security M7: strangers share one allowance for stored registrations, however many networks they
// use. Registrations that fit into an ID are not affected.
func TestStrangersStoreWithinOneAllowance(t *testing.T) {
	r := newRig(t, fromHeader, func(c *dcr.Config) { c.Limits = dcr.Limits{PerMinute: 60, Burst: 15} })
	kept := 0
	for i := range 2000 {
		if r.send("POST", long, "Test-Addr", fmt.Sprintf("10.%d.%d.1", i/250, i%250)).Code == http.StatusCreated {
			kept++
		}
	}
	if kept != 32*15 {
		t.Errorf("AS-145: %d registrations are kept of 2000 networks, want %d", kept, 32*15)
	}
	if w := r.send("POST", `{`+loopback+`}`, "Test-Addr", "203.0.113.1"); w.Code != http.StatusCreated {
		t.Errorf("AS-144: what needs no row: got %d %s", w.Code, w.Body)
	}
}

// Security M8: all networks of one /48 share an allowance.
func TestRegistrationsOfOneCustomer(t *testing.T) {
	r := newRig(t, fromHeader, func(c *dcr.Config) { c.Limits = dcr.Limits{PerMinute: 60, Burst: 3} })
	got := 0
	for i := range 200 {
		if r.send("POST", `{`+loopback+`}`, "Test-Addr",
			fmt.Sprintf("2001:db8:7:%x::1", i*5)).Code == http.StatusCreated {
			got++
		}
	}
	if got != 12 {
		t.Errorf("AS-144: %d registrations from the /64s of one /48, want 12", got)
	}
	if w := r.send("POST", `{`+loopback+`}`, "Test-Addr", "2001:db8:8::1"); w.Code != http.StatusCreated {
		t.Errorf("AS-144: another /48: got %d", w.Code)
	}
}

// AS-144: an unreadable request counts as a registration. Beyond the limit it gets 429 with the
// time to wait, not the status of its other fault.
func TestBeyondTheLimitEveryFaultIs429(t *testing.T) {
	r := newRig(t, managing, func(c *dcr.Config) { c.Limits = dcr.Limits{PerMinute: 1, Burst: 3} })
	made := r.register(t, `{`+loopback+`}`)
	id, token := text(made["client_id"]), text(made["registration_access_token"])
	unread := func() *httptest.ResponseRecorder {
		return r.send("POST", `{`+loopback+`}`, "Content-Type", "text/plain")
	}
	for range 2 {
		if w := unread(); w.Code != http.StatusUnsupportedMediaType {
			t.Fatalf("within the limit: got %d %s", w.Code, w.Body)
		}
	}
	for name, w := range map[string]*httptest.ResponseRecorder{
		"not JSON":  unread(),
		"too large": r.send("POST", `{`+loopback+`,"x":"`+strings.Repeat("a", 64<<10)+`"}`),
		"an update": r.configure("PUT", id, token, strings.Repeat("a", 65<<10)),
	} {
		if w.Code != http.StatusTooManyRequests || decode(t, w.Body.Bytes())["error"] != "slow_down" ||
			w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: got %d %s, Retry-After %q", name, w.Code, w.Body, w.Header().Get("Retry-After"))
		}
	}
}

// Security M7, mutation 19: a row holds at most eight kilobytes, whatever its members, and updates
// are charged by size.
func TestWhatARowHolds(t *testing.T) {
	contacts := `,"contacts":["` + strings.Repeat(strings.Repeat("c", 250)+`","`, 30) + `x"]`
	uris := func(n int) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf(`"https://a.example/%d%s"`, i, strings.Repeat("x", 900)))
		}
		return `"redirect_uris":[` + strings.Join(out, ",") + `]`
	}
	r := newRig(t, managing, func(c *dcr.Config) { c.Limits = dcr.Limits{PerMinute: 1, Burst: 150} })
	for name, body := range map[string]string{"redirect URIs": uris(10), "metadata": uris(1) + contacts} {
		if w := r.send("POST", `{`+body+`}`); w.Code != http.StatusBadRequest ||
			!strings.Contains(w.Body.String(), "more than 8192 bytes") {
			t.Errorf("AS-145: %s: got %d %.200s", name, w.Code, w.Body)
		}
	}
	made := r.register(t, `{`+loopback+`}`)
	id, token := text(made["client_id"]), text(made["registration_access_token"])
	put := func(what string) int {
		return r.configure("PUT", id, token, `{"client_id":"`+id+`",`+what+`}`).Code
	}
	if got := put(uris(10)); got != http.StatusBadRequest {
		t.Errorf("AS-145: an update to ten kilobytes: got %d", got)
	}
	for i := range 3 { // 40 units each, after four units
		if got := put(uris(8)); got != http.StatusOK {
			t.Errorf("update %d: got %d", i, got)
		}
	}
	if got := put(uris(8)); got != http.StatusTooManyRequests {
		t.Errorf("AS-145: an update beyond the limit: got %d, want 429", got)
	}
}
