//go:build release

package site

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/html"
)

const top = "../../.."

// built builds the site once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "mcp-authd-site-")
	if err != nil {
		return "", err
	}
	out, err := exec.Command(top+"/docs/site/build.sh", dir).CombinedOutput()
	if err != nil {
		return dir, fmt.Errorf("docs/site/build.sh: %w\n%s", err, out)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := built(); dir != "" {
		_ = os.RemoveAll(dir) // remains of a test
	}
	os.Exit(code)
}

func site(t *testing.T) string {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// served serves the site below a path like the public site, including its page for missing pages.
func served(t *testing.T) string {
	t.Helper()
	dir := site(t)
	const below = "/some/where/"
	files := http.StripPrefix(below, http.FileServer(http.Dir(dir)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ours := strings.CutPrefix(r.URL.Path, below)
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); !ours || err != nil {
			page, err := os.ReadFile(filepath.Join(dir, "404.html"))
			if err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write(page) // fails only if the browser has gone
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + below
}

// pages returns the parsed HTML files.
func pages(t *testing.T) map[string]*html.Node {
	t.Helper()
	dir, out := site(t), map[string]*html.Node{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".html") {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, path))
		if err == nil {
			out[path], err = html.Parse(bytes.NewReader(b))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 60 {
		t.Fatalf("DL-05: the site has %d pages", len(out))
	}
	return out
}

// TestChecks: DL-05: it runs the tests of the checks that make the build fail.
func TestChecks(t *testing.T) {
	cmd := exec.Command("go", "test", "-count", "1", ".")
	cmd.Dir = top + "/docs/site"
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestEachPage: DL-05: each page of docs/ is in the site and in the sitemap, with its Markdown
// file. It runs only our scripts and sends no requests to other hosts.
func TestEachPage(t *testing.T) {
	dir, all := site(t), pages(t)
	b, err := os.ReadFile(filepath.Join(dir, "sitemap.xml"))
	if err != nil {
		t.Fatal(err)
	}
	var sitemap struct {
		URLs []struct {
			Loc string `xml:"loc"`
		} `xml:"url"`
	}
	if err := xml.Unmarshal(b, &sitemap); err != nil {
		t.Fatal(err)
	}
	sources := 0
	err = fs.WalkDir(os.DirFS(top+"/docs"), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path == "site" {
			return fs.SkipDir
		}
		name, isPage := strings.CutSuffix(path, ".md")
		if err != nil || !isPage {
			return err
		}
		sources++
		at := strings.ToLower(name)
		if all[at+"/index.html"] == nil {
			t.Errorf("DL-05: docs/%s is not in the site", path)
		}
		twin, err := os.ReadFile(filepath.Join(dir, at+".md"))
		if err != nil || !bytes.HasPrefix(twin, []byte("# ")) && !bytes.HasPrefix(twin, []byte("<!--")) {
			t.Errorf("DL-05: docs/%s has no Markdown beside it: %v", path, err)
		}
		listed := func(u struct {
			Loc string `xml:"loc"`
		}) bool {
			return strings.HasSuffix(u.Loc, "/"+at+"/")
		}
		if !slices.ContainsFunc(sitemap.URLs, listed) {
			t.Errorf("DL-05: the sitemap does not have docs/%s", path)
		}
		return nil
	})
	if err != nil || sources < 60 {
		t.Fatalf("DL-05: docs has %d pages: %v", sources, err)
	}
	for path, root := range all {
		policy := ""
		for n := range root.Descendants() {
			if n.Data == "meta" && attribute(n, "http-equiv") == "Content-Security-Policy" {
				policy = attribute(n, "content")
			}
			for _, finding := range loads(n) {
				t.Errorf("DL-05: %s %s", path, finding)
			}
		}
		if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") ||
			strings.Contains(policy, "http") {
			t.Errorf("DL-05: %s has the policy %q", path, policy)
		}
	}
}

// loads returns the parts of an element that make a browser fetch from another host, or run inline
// code.
func loads(n *html.Node) (bad []string) {
	for _, name := range []string{"src", "srcset", "poster", "data", "background"} {
		if u, err := url.Parse(attribute(n, name)); err != nil || u.IsAbs() || u.Host != "" {
			bad = append(bad, "loads "+attribute(n, name))
		}
	}
	to := attribute(n, "href")
	if n.Data == "link" && strings.Contains(to, "//") && attribute(n, "rel") != "canonical" {
		bad = append(bad, "loads "+to)
	}
	if n.Type == html.ElementNode && n.Data == "script" && (n.FirstChild != nil || attribute(n, "src") == "") {
		bad = append(bad, "has a script of its own")
	}
	for _, a := range n.Attr {
		if strings.HasPrefix(a.Key, "on") {
			bad = append(bad, "has "+a.Key)
		}
	}
	return bad
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if n.Type == html.ElementNode && a.Key == name {
			return a.Val
		}
	}
	return ""
}

// TestContentsAndCode: DL-05: the table of contents marks each page of docs/ once, in its open
// section. No line ends within a flag such as --all.
func TestContentsAndCode(t *testing.T) {
	for path, root := range pages(t) {
		current, open, where, flags := 0, "", "", 0
		for n := range root.Descendants() {
			if n.Data == "nav" && attribute(n, "class") == "side" {
				for in := range n.Descendants() {
					if attribute(in, "aria-current") == "page" {
						current++
					}
					if in.Data == "summary" && slices.ContainsFunc(in.Parent.Attr, isOpen) {
						open += textOf(in)
					}
				}
			}
			if n.Data == "p" && attribute(n, "class") == "where" {
				where = textOf(n)
			}
			inline := n.Type == html.TextNode && n.Parent.Data == "code" && n.Parent.Parent.Data != "pre"
			if inline && attribute(n.Parent, "class") == "" && strings.Contains(n.Data, "--") {
				flags++
			}
		}
		if where == "" {
			continue // not a page of docs/
		}
		if current != 1 || open == "" || !strings.HasPrefix(where, open+" for ") {
			t.Errorf("DL-05: %s is marked %d times in its contents, where %q is open, and is in %q", path, current, open, where)
		}
		if flags > 0 {
			t.Errorf("DL-05: %s has %d flags after whose dashes a line may end", path, flags)
		}
	}
}

func isOpen(a html.Attribute) bool { return a.Key == "open" }

func textOf(n *html.Node) (out string) {
	for in := range n.Descendants() {
		if in.Type == html.TextNode {
			out += in.Data
		}
	}
	return out
}

// TestForPrograms: DL-05: the files for programs: llms.txt, all pages in one file, the schema.
func TestForPrograms(t *testing.T) {
	dir := site(t)
	for name, want := range map[string]string{
		"llms.txt":                        "operating.md): ",
		"llms-full.txt":                   "\n# Operating mcp-authd\n",
		"index.md":                        "install.md)",
		"reference/mcp-authd.schema.json": `"$schema"`,
		"reference/openapi.json":          `"openapi"`,
		"go.md":                           "(https://github.com/mcp-authd/mcp-authd/blob/main/examples/",
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("DL-05: %s lacks %q (%v)", name, want, err)
		}
		if strings.HasSuffix(name, ".json") && !json.Valid(b) {
			t.Errorf("DL-05: %s is no JSON", name)
		}
	}
}
