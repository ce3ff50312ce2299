package web

import (
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"sync"

	"github.com/mcp-authd/mcp-authd/web/text"
)

//go:embed templates/*.html
var templateFiles embed.FS

// pageNames are the templates that fill the layout, one file each.
var pageNames = [...]string{
	"login", "consent", "chooser", "error", "stopped", "handoff", "setup", "setupdone", "home", "signedout",
	"providerconsent", "providerredirect", "failed", "connect", "connected", "claim",
	"devicecode", "device", "devicedone", "link", "linkmessage", "forgotten", "answer", "notices",
	"remote", "remoteover", "remoteask", "remotedone",
	"second", "prove", "addpasskey", "addapp", "recoverycodes", "newpassword", "wayadded", "enrolfirst",
	"account", "stopeverything", "makekey", "keymade",
}

// templates are the pages as they are in the files, before a language is put in.
type templates map[string]*template.Template

// parsed are the templates of the program.
var parsed = sync.OnceValues(func() (templates, error) {
	base := template.New("layout.html").Funcs(template.FuncMap{
		"name": cleanName, "claim": cleanClaim, "address": cleanAddress,
		"link": link, "scheme": privateScheme,
		"strong": strong, "code": code, "host": host,
	}).Funcs(new(Pages).functions())
	for _, name := range []string{"product", "home", "asset", "language", "direction", "t", "n"} {
		base.Funcs(template.FuncMap{name: notInlined})
	}
	base, err := base.ParseFS(templateFiles, "templates/layout.html", "templates/parts.html", "templates/icons.html",
		"templates/passkey.html", "templates/account_notices.html")
	if err != nil {
		return nil, fmt.Errorf("web: parse the layout: %w", err)
	}
	out := make(templates)
	for _, name := range pageNames {
		page, err := base.Clone()
		if err == nil {
			page, err = page.ParseFS(templateFiles, "templates/"+name+".html")
		}
		if sections, _ := fs.Glob(templateFiles, "templates/"+name+"_*.html"); err == nil && len(sections) > 0 {
			page, err = page.ParseFS(templateFiles, sections...)
		}
		if err != nil {
			return nil, fmt.Errorf("web: parse page %s: %w", name, err)
		}
		out[name] = page
	}
	return out, nil
})

// notInlined stands for what is put into the templates before a page is shown.
func notInlined(...any) (string, error) { return "", errors.New("this is no word of every page") }

// functions are those that speak the language of the pages.
func (p *Pages) functions() template.FuncMap {
	return template.FuncMap{"text": p.text, "words": p.Plain, "plural": p.plural, "date": p.date, "day": p.day}
}

// in makes the pages of a language, each when it is first shown: a server shows few of them, and
// starts sooner.
func (t templates) in(l *text.Language, all *shared) *Pages {
	p := &Pages{shared: all, language: l, pages: make(map[string]func() (*template.Template, error))}
	words := maps.Clone(all.words)
	maps.Copy(words, map[string]string{"language": l.Tag, "direction": "ltr"})
	if l.RightToLeft() {
		words["direction"] = "rtl"
	}
	for name, page := range t {
		p.pages[name] = sync.OnceValues(func() (*template.Template, error) {
			page, err := p.made(page, words)
			if err != nil {
				return nil, fmt.Errorf("web: page %s: %w", name, err)
			}
			return page, nil
		})
	}
	return p
}

// made puts the branding, the texts and the words of every page into a page.
func (p *Pages) made(page *template.Template, words map[string]string) (*template.Template, error) {
	page, err := page.Clone()
	if err != nil {
		return nil, err
	}
	for part, text := range p.parts {
		if _, err := page.New(part).Parse(text); err != nil {
			return nil, err
		}
	}
	tr := translator{p.language, make(map[string]bool)}
	if err := tr.translate(page.Funcs(p.functions())); err != nil {
		return nil, err
	}
	constant(page, words)
	return page, nil
}
