package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// newHop returns an application whose callback redirects to another one, on a host that our pages
// do not name.
func newHop(t *testing.T, d *demotest.Demo) (hop *managed, last *app) {
	t.Helper()
	last = serveApp(t)
	to := strings.Replace(last.URL, "127.0.0.1", "localhost", 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	hop = newManaged(t, d, "Redirects on", server.URL+"/callback")
	hop.Server = server
	return hop, last
}

// TestFormsArrive checks that redirects after a form reach the application. Chromium applies the
// page's form-action to the redirects of the application.
func TestFormsArrive(t *testing.T) {
	t.Parallel()
	d := demotest.Start(t, demotest.Options{})
	a, last := newHop(t, d)
	b := open(t, looks[0])
	b.Do(chromedp.Navigate(a.link(d)))
	b.login(d.Username, d.Password)
	b.press("deny")
	if q := last.answer(t, b); q.Get("error") != "access_denied" {
		t.Errorf("RU-01 deny: got %v", q)
	}
	b.Do(chromedp.Navigate(a.link(d)))
	b.press("approve")
	if q := last.answer(t, b); !q.Has("code") {
		t.Errorf("RU-01 approve: got %v", q)
	}
	b.forget()
	b.Do(chromedp.Navigate(a.link(d)))
	b.login(d.Username, d.Password)
	if q := last.answer(t, b); !q.Has("code") {
		t.Errorf("RU-01 a sign-in with remembered consent: got %v", q)
	}
}

// TestFormsArriveInFirefox is TestFormsArrive in Firefox.
func TestFormsArriveInFirefox(t *testing.T) {
	lane.Long(t, "TestFormsArrive does the same in Chromium, which holds more back")
	t.Parallel()
	d := demotest.Start(t, demotest.Options{})
	a, last := newHop(t, d)
	type step struct {
		Link, Username, Password, Press, Title string
		Forget                                 bool
	}
	steps, err := json.Marshal([]step{
		{Link: a.link(d), Username: d.Username, Password: d.Password, Press: "deny", Title: "back"},
		{Link: a.link(d), Press: "approve", Title: "back"},
		{Link: a.link(d), Username: d.Username, Password: d.Password, Title: "back", Forget: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := npmtest.Command(t, "node", "browser/firefox.mjs", startFirefox(t), string(steps))
	var said, complaints bytes.Buffer
	cmd.Stderr = &complaints
	done, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(wait.Bound, func() { cmd.Process.Kill() })
	defer hung.Stop()
	for lines := bufio.NewScanner(done); lines.Scan(); { // one line per event that it waited for
		said.WriteString(lines.Text() + "\n")
		hung.Reset(wait.Bound)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v after:\n%s%s", err, &said, &complaints)
	}
	for _, want := range []string{"error", "code", "code"} {
		select {
		case q := <-last.back:
			if !q.Has(want) {
				t.Errorf("RU-01 got %v, want %s", q, want)
			}
		default:
			t.Errorf("RU-01 no answer with %s", want)
		}
	}
}

// startFirefox starts a Firefox and returns the address of its WebDriver BiDi server.
func startFirefox(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("firefox-esr")
	if err != nil {
		path, err = exec.LookPath("firefox")
	}
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatal("no Firefox: apt-get install firefox-esr")
	default:
		t.Skip("no Firefox: apt-get install firefox-esr")
	}
	profile, err := os.MkdirTemp("", "mcp-authd-firefox-")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0")
	cmd.Env = append(os.Environ(), "HOME="+profile)
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(wait.Bound, func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		cmd.Process.Kill() // unless the script has closed it
		cmd.Wait()
		os.RemoveAll(profile)
	})
	defer hung.Stop()
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "WebDriver BiDi listening on "); ok {
			go func() {
				for lines.Scan() {
				}
			}()
			return address
		}
	}
	t.Fatal("Firefox offers no WebDriver BiDi")
	return ""
}
