package pages

import (
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"sync"

	"github.com/mcp-authd/mcp-authd/internal/text"
	"github.com/mcp-authd/mcp-authd/web"
)

// pageNames lists the templates that fill the layout, one file each.
var pageNames = [...]string{
	"login", "consent", "chooser", "confirm", "paused",
	"error", "stopped", "handoff", "setup", "setupdone", "home", "signedout",
	"providerconsent", "failed", "connect", "connected", "claim",
	"devicecode", "device", "devicedone", "clearance", "clearanceelsewhere", "clearanceover",
	"link", "linkmessage", "forgotten", "answer", "notices",
	"remote", "remoteover", "remoteask", "remotedone",
	"second", "prove", "addpasskey", "addapp", "recoverycodes", "newpassword", "wayadded", "enrolfirst",
	"account", "stopeverything", "makekey", "keymade", "helpers",
	"console",
}

// layout returns the part that all pages share, before a language is applied. It is only cloned,
// never shown.
var layout = sync.OnceValues(func() (*template.Template, error) {
	base := template.New("layout.html").Funcs(template.FuncMap{
		"name": cleanName, "claim": cleanClaim, "tool": cleanTool, "address": cleanAddress,
		"exact": cleanExact, "lines": cleanLines,
		"link": link, "scheme": privateScheme,
		"strong": strong, "code": code, "host": host, "unguessable": unguessable,
	}).Funcs(new(Pages).functions())
	for _, name := range []string{"product", "home", "asset", "language", "direction", "t", "n"} {
		base.Funcs(template.FuncMap{name: notInlined})
	}
	base, err := base.ParseFS(web.Files, "templates/layout.html", "templates/parts.html", "templates/icons.html",
		"templates/passkey.html", "templates/account_notices.html")
	if err != nil {
		return nil, fmt.Errorf("pages: parse the layout: %w", err)
	}
	return base, nil
})

// pageIn returns a page from its files, in the layout.
func pageIn(base *template.Template, name string) (*template.Template, error) {
	page, err := base.Clone()
	if err == nil {
		page, err = page.ParseFS(web.Files, "templates/"+name+".html")
	}
	if sections, _ := fs.Glob(web.Files, "templates/"+name+"_*.html"); err == nil && len(sections) > 0 {
		page, err = page.ParseFS(web.Files, sections...)
	}
	return page, err
}

// notInlined is a placeholder for functions whose results are inserted before a page is shown.
func notInlined(...any) (string, error) {
	return "", errors.New("this name must be a word of every page")
}

// functions returns the template functions that depend on the language.
func (p *Pages) functions() template.FuncMap {
	return template.FuncMap{
		"narrows": narrows,
		"text":    p.text, "words": p.Plain, "plural": p.plural, "date": p.date, "day": p.day, "stamp": stamp,
	}
}

// in returns the pages of a language, each parsed on first use. A server shows few of them. It
// starts faster, and the garbage collector has less to scan after each password (see
// internal/users).
func (p *shared) in(l *text.Language, base *template.Template) *Pages {
	out := &Pages{shared: p, language: l, pages: make(map[string]func() (*template.Template, error))}
	words := maps.Clone(p.words)
	maps.Copy(words, map[string]string{"language": l.Tag, "direction": "ltr"})
	if l.RightToLeft() {
		words["direction"] = "rtl"
	}
	for _, name := range pageNames {
		out.pages[name] = sync.OnceValues(func() (*template.Template, error) {
			page, err := pageIn(base, name)
			if err == nil {
				err = out.fill(page, words)
			}
			if err != nil {
				return nil, fmt.Errorf("pages: page %s: %w", name, err)
			}
			return page, nil
		})
	}
	return out
}

// fill inserts the branding, the texts and the constant values into a page.
func (p *Pages) fill(page *template.Template, words map[string]string) error {
	for part, text := range p.parts {
		if _, err := page.New(part).Parse(text); err != nil {
			return err
		}
	}
	tr := translator{p.language, make(map[string]bool)}
	if err := tr.translate(page.Funcs(p.functions())); err != nil {
		return err
	}
	constant(page, words)
	return nil
}
