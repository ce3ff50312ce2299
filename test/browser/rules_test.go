package browser

import (
	_ "embed"

	"github.com/mcp-authd/mcp-authd/internal/testkit/browsertest"
)

//go:embed rules.js
var rules string

// narrow lists very small screens that every page must fit.
var narrow = []browsertest.Look{
	{Name: "narrow-light", Width: 320, Height: 640, Scheme: "light"},
	{Name: "narrow-dark", Width: 360, Height: 780, Scheme: "dark"},
}

// show checks the current page in every look and saves its pictures.
func (b *tab) show(page string) {
	b.TB.Helper()
	b.Until("document.readyState === 'complete' && !!document.querySelector('main h1')")
	for _, l := range narrow {
		b.Dress(l)
		b.hold(page)
		b.picture(page)
	}
	for _, l := range looks {
		b.Dress(l)
		b.hold(page)
		b.picture(page)
	}
	b.axeOn(page) // with the last look, the darkest and smallest
	b.Dress(looks[0])
}

// hold checks the page with rules.js.
func (b *tab) hold(page string) {
	b.TB.Helper()
	for _, p := range eval[[]string](b, rules) {
		b.TB.Errorf("%s %s: %s", page, b.Look.Name, p)
	}
}
