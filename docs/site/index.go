package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	indexName = "search.json"
	mostText  = 6_000     // bytes of one part
	mostIndex = 3_000_000 // bytes, and
	mostSent  = 800_000   // compressed
)

// index is the search index. site.js describes the members of each list.
type index struct {
	Pages [][4]any `json:"pages"`
	Parts [][4]any `json:"parts"`
}

// writeIndex writes the index of all pages with a text, and returns its size, also compressed.
func writeIndex(folder string, pages map[string]*page) (plain, packed int, err error) {
	out := index{Pages: [][4]any{}, Parts: [][4]any{}}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		out.add(pages[name])
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(out); err != nil {
		return 0, 0, err
	}
	var sent bytes.Buffer
	z := gzip.NewWriter(&sent)
	if _, err := z.Write(b.Bytes()); err != nil {
		return 0, 0, err
	}
	if err := z.Close(); err != nil {
		return 0, 0, err
	}
	if b.Len() > mostIndex || sent.Len() > mostSent {
		return 0, 0, fmt.Errorf("the index of the search has %d bytes, %d compressed; %d and %d are the most it may have",
			b.Len(), sent.Len(), mostIndex, mostSent)
	}
	return b.Len(), sent.Len(), os.WriteFile(filepath.Join(folder, indexName), b.Bytes(), 0o644)
}

// add adds a page: its text up to the first heading, and that below each one.
func (x *index) add(p *page) {
	article := first(p.root, func(n *html.Node) bool { return n.DataAtom == atom.Article })
	if article == nil {
		return
	}
	title := first(article, func(n *html.Node) bool { return n.DataAtom == atom.H1 })
	if title == nil {
		return
	}
	section := ""
	if where := first(p.root, withClass("where")); where != nil && where.FirstChild != nil {
		section = strings.TrimSpace(where.FirstChild.Data)
	}
	number := len(x.Pages)
	x.Pages = append(x.Pages, [4]any{p.address(), text(title), section, weight(section)})
	anchor, heading := "", ""
	var words []string
	end := func() {
		x.Parts = append(x.Parts, [4]any{number, anchor, heading, bounded(strings.Join(words, " "))})
		words = nil
	}
	for n := range article.ChildNodes() {
		switch n.DataAtom {
		case atom.H1, atom.Details:
		case atom.H2, atom.H3, atom.H4:
			end()
			anchor, heading = attribute(n, "id"), text(n)
		default:
			if s := spaced(n); s != "" {
				words = append(words, s)
			}
		}
	}
	end()
}

// weight returns how much a hit on a page counts. Pages for developers and reviewers mention everything, and
// would otherwise precede the page that explains how to do something.
func weight(section string) float64 {
	if section == "How it is built" || section == "Security review" {
		return 0.5
	}
	return 1
}

// spaced is the text of a node, with a space where cells, items and lines end.
func spaced(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		switch {
		case d.Type == html.TextNode:
			b.WriteString(d.Data)
		case d.DataAtom == atom.Td || d.DataAtom == atom.Th || d.DataAtom == atom.Li || d.DataAtom == atom.P:
			b.WriteByte(' ')
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// bounded cuts a text at a word.
func bounded(s string) string {
	if len(s) <= mostText {
		return s
	}
	cut := s[:mostText]
	if i := strings.LastIndexByte(cut, ' '); i > 0 {
		cut = cut[:i]
	}
	for !utf8.ValidString(cut) {
		cut = cut[:len(cut)-1]
	}
	return cut
}
