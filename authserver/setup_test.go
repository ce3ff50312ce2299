package authserver

import (
	"net/url"
	"strings"
	"testing"
)

// TestSetupCheck: a setup link that was replaced is said before somebody has typed a
// password (issue 11, 4.7), in the one way in which all that are not good are.
func TestSetupCheck(t *testing.T) {
	r := newRig(t)
	p := r.person()
	token := func() string {
		t.Helper()
		link, err := r.SetupLink(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, token, _ := strings.Cut(link, "token=")
		return token
	}
	first, second := token(), token()
	pg := p.get("/setup")
	if !strings.Contains(pg.header.Get("Content-Security-Policy"), "; connect-src 'self'") {
		t.Errorf("its script may not ask: %s", pg.header.Get("Content-Security-Policy"))
	}
	step := pg.step(t)
	for name, tt := range map[string]struct {
		step, token string
		want        int
	}{
		"the last one":       {step, second, 204},
		"one that it ended":  {step, first, 410},
		"one that was made":  {step, "x", 410},
		"none":               {step, "", 410},
		"of another browser": {"x", second, 400},
	} {
		got := p.post("/setup/check", url.Values{"step": {tt.step}, "token": {tt.token}})
		if got.status != tt.want || got.body != "" {
			t.Errorf("%s: got %d %q, want %d", name, got.status, got.body, tt.want)
		}
	}
	if got := p.post("/setup/check", url.Values{"step": {step}, "token": {second}}, "Sec-Fetch-Site", "cross-site"); got.status != 403 {
		t.Errorf("from another site: got %d", got.status)
	}
	done := p.post("/setup", url.Values{"step": {step}, "token": {second}, "username": {"root"}, "password": {"correct horse battery"}})
	if done.status != 200 {
		t.Fatalf("checking has spent the token: got %d %s", done.status, done.body)
	}
	if got := p.post("/setup/check", url.Values{"step": {step}, "token": {second}}); got.status != 410 {
		t.Errorf("spent: got %d", got.status)
	}
}
