package main

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// checker holds pages to the rules of the site.
type checker struct {
	folder, repository    string
	public, repositoryURL string
	pages                 map[string]*page
	links                 int // how many were followed
}

// loads lists the attributes that make a browser fetch a file.
var loads = []string{"src", "srcset", "poster", "data", "background"}

// check returns the faults, in the order of the pages.
func (c *checker) check() ([]string, error) {
	var bad []string
	for _, p := range c.pages {
		bad = append(bad, c.checkPage(p)...)
	}
	css, err := c.checkStyles()
	bad = append(bad, css...)
	slices.Sort(bad)
	return slices.Compact(bad), err
}

func (c *checker) checkPage(p *page) (bad []string) {
	say := func(format string, args ...any) {
		bad = append(bad, p.path+": "+fmt.Sprintf(format, args...))
	}
	for _, id := range p.twice {
		say("two elements have the id %q", id)
	}
	for n := range p.root.Descendants() {
		if strange(n) {
			say("<%s> is no element that pages have: words in angle brackets belong into `code`", n.Data)
		}
		for _, name := range loads {
			if v := attribute(n, name); v != "" {
				if absolute(v) {
					say("it loads %s", v)
				} else if finding := c.follow(p, v); finding != "" {
					say("%s", finding)
				}
			}
		}
		if finding := c.checkReference(p, n); finding != "" {
			say("%s", finding)
		}
		if n.Data == "style" && p.path != "404.html" || attribute(n, "style") != "" {
			say("it has a style of its own, which its Content-Security-Policy forbids")
		}
	}
	return bad
}

// checkReference checks the target of an element's href or action.
func (c *checker) checkReference(p *page, n *html.Node) string {
	to := attribute(n, "href")
	if to == "" {
		to = attribute(n, "action")
	}
	if to == "" {
		return ""
	}
	if n.Data == "link" && absolute(to) && attribute(n, "rel") != "canonical" {
		return "it loads " + to
	}
	return c.follow(p, to)
}

// absolute reports whether a reference names a host.
func absolute(to string) bool {
	u, err := url.Parse(to)
	return err != nil || u.Host != "" || u.Scheme != ""
}

// follow returns the fault of a page's reference, "" if it has none.
func (c *checker) follow(p *page, to string) string {
	c.links++
	if rest, ours := strings.CutPrefix(to, c.public); ours {
		return c.find(p, rest, to)
	}
	if rest, ours := strings.CutPrefix(to, c.repositoryURL+"/"); ours {
		return c.findSource(rest)
	}
	if absolute(to) {
		return ""
	}
	u, err := url.Parse(to)
	if err != nil {
		return fmt.Sprintf("%q is no address", to)
	}
	if u.Path == "" {
		if !p.ids[u.Fragment] && u.Fragment != "" {
			return fmt.Sprintf("there is no #%s on it", u.Fragment)
		}
		return ""
	}
	if strings.HasPrefix(u.Path, "/") {
		return fmt.Sprintf("%q would leave the folder of the site", to)
	}
	return c.find(p, join(path.Dir(p.path), u), to)
}

// join is the path of a relative reference, with its fragment; a folder ends with a slash.
func join(dir string, u *url.URL) string {
	out := path.Join(dir, u.Path)
	if strings.HasSuffix(u.Path, "/") || path.Base(u.Path) == "." || path.Base(u.Path) == ".." {
		out = strings.TrimPrefix(out+"/", "./")
	}
	if u.Fragment != "" {
		out += "#" + u.Fragment
	}
	return out
}

// find looks for the target of a reference below the root of the site.
func (c *checker) find(p *page, name, as string) string {
	name, fragment, _ := strings.Cut(name, "#")
	name, _, _ = strings.Cut(name, "?")
	if name == "" || strings.HasSuffix(name, "/") {
		name += "index.html"
	}
	if name == indexName {
		return "" // it is written afterwards
	}
	if !fs.ValidPath(name) {
		return fmt.Sprintf("%q leaves the site", as)
	}
	if info, err := os.Stat(filepath.Join(c.folder, name)); err != nil || info.IsDir() {
		return fmt.Sprintf("there is no %s (%q)", name, as)
	}
	if other := c.pages[name]; fragment != "" && other != nil && !other.ids[fragment] {
		return fmt.Sprintf("there is no #%s in %s", fragment, name)
	}
	return ""
}

var (
	view  = regexp.MustCompile(`^(blob|tree)/main/([^#?]+)`)
	other = regexp.MustCompile(`^(issues|pulls|discussions|releases|security|actions|commits)(/|$)`)
)

// findSource looks for a file or folder of the repository.
func (c *checker) findSource(rest string) string {
	m := view.FindStringSubmatch(rest)
	if m == nil {
		if !other.MatchString(rest) {
			return fmt.Sprintf("%q is no place of the repository that is known here", rest)
		}
		return ""
	}
	info, err := os.Stat(filepath.Join(c.repository, filepath.FromSlash(m[2])))
	switch {
	case err != nil || !fs.ValidPath(strings.TrimSuffix(m[2], "/")):
		return "there is no " + m[2] + " in the repository"
	case info.IsDir() != (m[1] == "tree"):
		return m[2] + " is a folder, or is none, other than the link says"
	}
	return ""
}

// fetches is what makes a browser fetch something for a style.
var fetches = regexp.MustCompile(`(?i)@import|url\(|image-set\(`)

// checkStyles: styles load nothing at all.
func (c *checker) checkStyles() (bad []string, err error) {
	err = fs.WalkDir(os.DirFS(c.folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".css") {
			return err
		}
		b, err := os.ReadFile(filepath.Join(c.folder, name))
		if found := fetches.FindString(string(b)); found != "" {
			bad = append(bad, fmt.Sprintf("%s: it loads something: %s", name, found))
		}
		return err
	})
	return bad, err
}
