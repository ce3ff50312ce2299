package browser

import (
	_ "embed"
	"encoding/json"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

//go:embed rules.js
var rules string

// narrow are screens smaller than most, on which a page must still fit.
var narrow = []look{
	{"narrow-light", 320, 640, "light"},
	{"narrow-dark", 360, 780, "dark"},
}

// dress gives the open page another screen.
func (b *tab) dress(l look) {
	b.t.Helper()
	b.l = l
	b.do(chromedp.EmulateViewport(l.width, l.height))
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: l.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		},
	}); err != nil {
		b.t.Fatal(err)
	}
}

// show holds the page that is open against the rules in every look, and takes its pictures.
func (b *tab) show(page string) {
	b.t.Helper()
	b.until("document.readyState === 'complete' && !!document.querySelector('main h1')")
	for _, l := range narrow {
		b.dress(l)
		b.hold(page)
		b.picture(page)
	}
	for _, l := range looks {
		b.dress(l)
		b.hold(page)
		b.picture(page)
	}
	b.axeOn(page) // with the last look, the darkest and smallest
	b.dress(looks[0])
}

// focus makes the tab the window that a person looks at: in others nothing has the focus.
func (b *tab) focus() {
	b.t.Helper()
	focused := emulation.SetFocusEmulationEnabledParams{Enabled: true}
	if _, err := chromedp.Call(b.ctx, emulation.SetFocusEmulationEnabled, focused); err != nil {
		b.t.Fatal(err)
	}
}

// hold holds the page against rules.js.
func (b *tab) hold(page string) {
	b.t.Helper()
	b.focus()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](rules))
	if err != nil {
		b.t.Fatalf("%s %s: %v", page, b.l.name, err)
	}
	var problems []string
	if err := json.Unmarshal([]byte(out), &problems); err != nil {
		b.t.Fatalf("%s %s: the rules answered %q", page, b.l.name, out)
	}
	for _, p := range problems {
		b.t.Errorf("%s %s: %s", page, b.l.name, p)
	}
}
