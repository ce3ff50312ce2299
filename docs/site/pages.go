package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// page is an HTML file of the site.
type page struct {
	path  string // of its file, below the folder
	root  *html.Node
	ids   map[string]bool
	twice []string // ids that occur more than once
}

func readPages(folder string) (map[string]*page, error) {
	pages := map[string]*page{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".html") {
			return err
		}
		f, err := os.Open(filepath.Join(folder, path))
		if err != nil {
			return err
		}
		defer f.Close()
		root, err := html.Parse(f)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		p := &page{path: path, root: root, ids: map[string]bool{}}
		for n := range root.Descendants() {
			if id := attribute(n, "id"); id != "" {
				if p.ids[id] {
					p.twice = append(p.twice, id)
				}
				p.ids[id] = true
			}
		}
		pages[path] = p
		return nil
	})
	if err == nil && pages["index.html"] == nil {
		err = fmt.Errorf("%s has no pages", folder)
	}
	return pages, err
}

// address is where a page is below the root of the site: "" for the first, "install/".
func (p *page) address() string { return strings.TrimSuffix(p.path, "index.html") }

func attribute(n *html.Node, name string) string {
	if n.Type != html.ElementNode {
		return ""
	}
	i := slices.IndexFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
	if i < 0 {
		return ""
	}
	return n.Attr[i].Val
}

// elements lists the permitted elements. Others were meant as words between < and >, or load a file.
var elements = strings.Fields("html head meta title link script noscript style body header main footer nav " +
	"aside section article div span p h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table thead tbody tr th td a code pre kbd " +
	"mark strong em b i del sup sub small br hr img blockquote details summary form input button")

func strange(n *html.Node) bool {
	return n.Type == html.ElementNode && n.Namespace != "svg" && !slices.Contains(elements, n.Data)
}

// text returns the visible text of a node, with one space between words.
func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// first returns the first node below n that holds accepts, or nil.
func first(n *html.Node, holds func(*html.Node) bool) *html.Node {
	for d := range n.Descendants() {
		if holds(d) {
			return d
		}
	}
	return nil
}

// withClass returns a filter for elements with a class.
func withClass(class string) func(*html.Node) bool {
	return func(n *html.Node) bool { return slices.Contains(strings.Fields(attribute(n, "class")), class) }
}
