package clients

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

var authorizeURL = regexp.MustCompile(`https?://[^\s"]*/authorize\?[^\s"\x1b]*`)

// person finds authorization URLs in a client's output and visits each of them once, like a user
// whose browser does not open automatically.
type person struct {
	t *testing.T
	*demotest.Person

	mu   sync.Mutex // guards the fields below
	next map[string]func()
	gone bool
	seen map[string]bool
	text strings.Builder
	wg   sync.WaitGroup
}

func newPerson(t *testing.T, d *demotest.Demo) *person {
	return &person{t: t, Person: d.Person(), seen: map[string]bool{}}
}

// watch reads a stream to its end.
func (p *person) watch(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.line(lines.Text())
	}
}

func (p *person) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.WriteString(text + "\n")
	for words, act := range p.next {
		if strings.Contains(text, words) {
			delete(p.next, words)
			p.wg.Go(act)
		}
	}
	link := authorizeURL.FindString(text)
	if link == "" || p.seen[link] || p.gone {
		return
	}
	p.seen[link] = true
	p.wg.Go(func() {
		back, err := p.Visit(link)
		if err != nil {
			p.t.Errorf("sign-in: %v", err)
			return
		}
		if err := callback(back.String()); err != nil {
			p.t.Errorf("callback: %v", err)
		}
	})
}

// once calls act when the client first prints the words.
func (p *person) once(words string, act func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = map[string]func(){words: act}
}

// goAway makes the user stop visiting URLs.
func (p *person) goAway() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
}

// callback returns the browser to the client. Some clients print the URL before they listen,
// because real users are slower than this one.
func callback(url string) (err error) {
	wait.Poll(wait.Bound, func() bool {
		var resp *http.Response
		if resp, err = http.Get(url); err == nil {
			err = resp.Body.Close()
		}
		return !errors.Is(err, syscall.ECONNREFUSED)
	})
	return err
}

func (p *person) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func (p *person) signIns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.seen)
}

// quietBrowser puts an opener first on PATH that opens nothing. The URL is also printed, and two
// visits would race.
func quietBrowser(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"xdg-open", "open"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i, kv := range cmd.Env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			cmd.Env[i] = "PATH=" + dir + string(os.PathListSeparator) + path
		}
	}
	cmd.Env = append(cmd.Env, "BROWSER="+filepath.Join(dir, "xdg-open"))
}

// run runs a client to its end and returns its output.
func run(t *testing.T, p *person, cmd *exec.Cmd) (stdout string) {
	t.Helper()
	stdout, err := tryRun(t, p, cmd)
	if err != nil {
		t.Fatal(err)
	}
	return stdout
}

// tryRun is run for a client that may fail. Its error contains the complete output.
func tryRun(t *testing.T, p *person, cmd *exec.Cmd) (stdout string, err error) {
	t.Helper()
	quietBrowser(t, cmd)
	var out strings.Builder
	outR, outW := io.Pipe()
	errR, errW := io.Pipe()
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, outW), errW
	var wg sync.WaitGroup
	wg.Go(func() { p.watch(outR) })
	wg.Go(func() { p.watch(errR) })
	stop := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	err = cmd.Run()
	stop.Stop()
	outW.Close()
	errW.Close()
	wg.Wait()
	p.wg.Wait()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, p.output())
	}
	return out.String(), err
}
