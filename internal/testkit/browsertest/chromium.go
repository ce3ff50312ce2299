// Package browsertest drives a real Chromium for tests.
//
// A test process has one Chromium. Each tab has its own browser context, so tabs share no cookies,
// storage or cache. If a test fails, its tabs save a screenshot and the HTML of the page.
package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// Path returns the path of a Chromium, or "".
func Path() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Need skips the test, or fails it with CI=true, if there is no Chromium.
func Need(tb testing.TB) {
	tb.Helper()
	switch {
	case Path() != "":
	case os.Getenv("CI") == "true":
		tb.Fatal("no Chromium: apt-get install chromium")
	default:
		tb.Skip("no Chromium: apt-get install chromium")
	}
}

// process is a running Chromium.
type process struct {
	ctx context.Context // of its first tab, which stays empty; done when Chromium has exited
	end func()          // kills it
}

// flags are chromedp's flags without those that reveal automation, because pages behave differently
// when a program drives the browser (web/assets/hold.js). Tab.Automate reveals it to a page.
var flags = append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox,
	chromedp.Flag("enable-automation", false),
	chromedp.Flag("disable-blink-features", "AutomationControlled"),
	chromedp.Flag("disable-quic", true),
	chromedp.Flag("disable-background-networking", true),
	chromedp.Flag("disable-component-update", true),
	chromedp.Flag("disable-sync", true),
	chromedp.Flag("host-resolver-rules", "MAP other.example 127.0.0.1"))

func start(more ...chromedp.ExecAllocatorOption) (*process, error) {
	parent, err := profiles()
	if err != nil {
		return nil, err
	}
	profile, err := os.MkdirTemp(parent, "")
	if err != nil {
		return nil, err
	}
	options := append(flags[:len(flags):len(flags)], chromedp.ExecPath(Path()), chromedp.UserDataDir(profile))
	ctx, end := chromedp.NewExecAllocator(context.Background(), append(options, more...)...)
	hung := time.AfterFunc(wait.Bound, end)
	defer hung.Stop()
	ctx, _ = chromedp.NewContext(ctx) // ends with the allocator
	if err := chromedp.Do(ctx); err != nil {
		end()
		return nil, fmt.Errorf("start Chromium: %w", err)
	}
	return &process{ctx, end}, nil
}

// profiles returns the directory for the Chromium profiles of this process. A shell removes it when the
// process has ended, even if it was killed: the shell reads from a pipe that only this process holds
// open. Chromium itself ends with its own pipe, and on Linux by a signal.
var profiles = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "mcp-authd-chromium-")
	if err != nil {
		return "", err
	}
	const remove = `trap "" HUP INT TERM; cat; rm -rf "$1" || { sleep 1; rm -rf "$1"; }`
	shell := exec.Command("sh", "-c", remove, "sh", dir)
	if _, err := shell.StdinPipe(); err != nil {
		return "", err
	}
	if err := shell.Start(); err != nil {
		return "", err
	}
	go func() { _ = shell.Wait() }() // holds the pipe open
	return dir, nil
})

var one struct {
	sync.Mutex
	*process
}

// shared returns the Chromium of this test process. It starts Chromium on the first call, and again if
// Chromium has exited.
func shared() (*process, error) {
	one.Lock()
	defer one.Unlock()
	if one.process != nil && one.ctx.Err() == nil {
		return one.process, nil
	}
	var err error
	one.process, err = start()
	return one.process, err
}
