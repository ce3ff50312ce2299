package browsertest

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/failure"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// Look is a user's screen.
type Look struct {
	Name          string
	Width, Height int64
	Scheme        string // the color scheme: light or dark
}

// Tab is a page in its own browser context. It belongs to one test.
type Tab struct {
	TB   testing.TB
	Ctx  context.Context // chromedp's
	Look Look

	kept *bool // whether the page has been saved for a failed test
}

// bound is the longest time that a tab may be open.
const bound = 10 * time.Minute

// Open opens a tab of the Chromium of this process. It closes with the test.
func Open(tb testing.TB, l Look) *Tab {
	tb.Helper()
	Need(tb)
	p, err := shared()
	if err != nil {
		tb.Fatal(err)
	}
	return p.open(tb, l)
}

// OpenAlone starts another Chromium with additional flags and opens a tab of it. Both end with the test.
func OpenAlone(tb testing.TB, l Look, flags ...chromedp.ExecAllocatorOption) *Tab {
	tb.Helper()
	Need(tb)
	p, err := start(flags...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.end)
	return p.open(tb, l)
}

func (p *process) open(tb testing.TB, l Look) *Tab {
	tb.Helper()
	ctx, closeTab := chromedp.NewContext(p.ctx, chromedp.WithNewBrowserContext())
	ctx, cancel := context.WithTimeout(ctx, bound)
	b := &Tab{TB: tb, Ctx: ctx, kept: new(bool)}
	tb.Cleanup(func() {
		b.keep(tb)
		cancel()
		closeTab()
	})
	hung := time.AfterFunc(wait.Bound, cancel)
	err := chromedp.Do(ctx)
	if hung.Stop(); err != nil {
		p.end() // the next test starts another
		tb.Fatalf("Chromium opens no tab: %v", err)
	}
	// The tab keeps the focus when other tabs are open.
	Call(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	b.Dress(l)
	return b
}

// keep saves the page if the test has failed.
func (b *Tab) keep(tb testing.TB) {
	if !tb.Failed() || *b.kept {
		return
	}
	*b.kept = true
	page, err := Run(b, chromedp.Evaluate[string](
		"'<!-- ' + location.href + ' -->\\n' + document.documentElement?.outerHTML"))
	if err != nil {
		tb.Logf("the page is not kept: %v", err)
		return
	}
	failure.Save(tb, "page.html", []byte(page))
	picture, err := Run(b, chromedp.FullScreenshot(100))
	if err != nil {
		tb.Logf("the picture of the page is not kept: %v", err)
		return
	}
	failure.Save(tb, "page.png", picture)
}

// In returns the tab for a subtest.
func (b *Tab) In(tb testing.TB) *Tab {
	in := *b
	in.TB = tb
	tb.Cleanup(func() { in.keep(tb) })
	return &in
}

// Dress sets the tab's screen. It turns off motion, so that colors change at once.
func (b *Tab) Dress(l Look) {
	b.TB.Helper()
	b.Look = l
	b.Do(chromedp.EmulateViewport(l.Width, l.Height))
	Call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: l.Scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		},
	})
}

// Automate sets navigator.webdriver, which says that a program drives the browser, in the pages that the
// tab opens from now on.
func (b *Tab) Automate() {
	b.TB.Helper()
	Call(b, emulation.SetAutomationOverride, emulation.SetAutomationOverrideParams{Enabled: true})
}

// WithoutScript turns off scripts in the pages that the tab opens from now on.
func (b *Tab) WithoutScript() {
	b.TB.Helper()
	Call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

// Advance moves the clock of the page's timers by d, which takes hardly any real time. Afterwards the
// clock runs as fast as it can.
func (b *Tab) Advance(d time.Duration) {
	b.TB.Helper()
	budget := float64(d.Milliseconds())
	policy := emulation.SetVirtualTimePolicyParams{Policy: emulation.VirtualTimePolicyAdvance, Budget: &budget}
	advance := func(ctx context.Context, t *chromedp.Target) (emulation.SetVirtualTimePolicyResult, error) {
		return cdp.Call(ctx, t, emulation.SetVirtualTimePolicy, policy)
	}
	if _, err := Run(b, chromedp.WaitEvent(emulation.VirtualTimeBudgetExpired, nil, advance)); err != nil {
		b.TB.Fatalf("let %v pass: %v", d, err)
	}
	policy.Budget = nil // with a budget, the clock stops when it is used up
	Call(b, emulation.SetVirtualTimePolicy, policy)
}

// Run runs a step for at most a minute, so that a page that hangs fails only its own test.
func Run[T any](b *Tab, step chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(b.Ctx, wait.Bound)
	defer cancel()
	return chromedp.Run(ctx, step)
}

// Call calls a command of the DevTools protocol. It fails the test if the command fails.
func Call[P, R any](b *Tab, command cdp.Command[P, R], params P) R {
	b.TB.Helper()
	ctx, cancel := context.WithTimeout(b.Ctx, wait.Bound)
	defer cancel()
	out, err := chromedp.Call(ctx, command, params)
	if err != nil {
		b.TB.Fatalf("%s: %v", command.Method, err)
	}
	return out
}

// Do runs steps. It fails the test if one of them fails.
func (b *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.TB.Helper()
	if _, err := Run(b, chromedp.Steps(steps...)); err != nil {
		b.TB.Fatalf("%v (at %s)", err, b.Location())
	}
}

// Eval returns the value of a JavaScript expression. It waits for a promise.
func Eval[T any](b *Tab, expression string) T {
	b.TB.Helper()
	out, err := Run(b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.TB.Fatalf("%v (at %s): %s", err, b.Location(), expression)
	}
	return out
}

// Until waits until a JavaScript expression is true. The tab may open other pages meanwhile.
func (b *Tab) Until(expression string) {
	b.TB.Helper()
	var last error
	holds := func() (is bool) {
		is, last = Run(b, chromedp.Evaluate[bool]("!!("+expression+")"))
		return is
	}
	if wait.Poll(wait.Bound, func() bool { return holds() || b.Ctx.Err() != nil }) && b.Ctx.Err() == nil {
		return
	}
	text, _ := Run(b, chromedp.Evaluate[string]("document.body.innerText"))
	b.TB.Fatalf("%s: waited %v in vain until %s (%v): %s", b.Location(), wait.Bound, expression, last, text)
}

// Location returns the address of the page.
func (b *Tab) Location() string {
	u, _ := Run(b, chromedp.Location())
	return u
}
