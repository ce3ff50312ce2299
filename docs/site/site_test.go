package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// write makes files in a folder, and in one for the repository.
func write(t *testing.T, files map[string]string) (folder, repository string) {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(root, "out"), filepath.Join(root, "repo")
}

// TestCheckCanFail: DL-05: each thing that can be wrong with a page is found, and nothing else.
func TestCheckCanFail(t *testing.T) {
	folder, repository := write(t, map[string]string{
		"out/index.html": `<main><h1 id="a">A</h1><a href="b/">b</a><a href="b/#here">c</a><a href="#a">d</a>
			<a href="https://repo.example/x/blob/main/src/x.go">e</a><a href="https://repo.example/x/tree/main/src">f</a>
			<a href="https://other.example/anything">g</a><a href="search.json">h</a><svg><path d="M0"/></svg></main>`,
		"out/b/index.html": `<main><h1 id="here">B</h1><h2 id="here">B</h2><a href="../">a</a><a href="../no/">b</a>
			<a href="../#no">c</a><a href="#no">d</a><a href="https://repo.example/x/blob/main/src/no.go">e</a>
			<a href="https://repo.example/x/blob/main/src">f</a><a href="/root/">g</a><a href="../../up/">h</a>
			<img src="https://cdn.example/x.png"><p style="color: red"><name>words</name></p>
			<link rel="stylesheet" href="https://cdn.example/x.css"></main>`,
		"out/s.css":     `a { background: url("https://cdn.example/x.png") }`,
		"repo/src/x.go": "package src\n",
	})
	pages, err := readPages(folder)
	if err != nil {
		t.Fatal(err)
	}
	c := checker{
		folder: folder, repository: repository, public: "https://public.example/", repositoryURL: "https://repo.example/x",
		pages: pages,
	}
	got, err := c.check()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`b/index.html: "../../up/" leaves the site`,
		`b/index.html: "/root/" would leave the folder of the site`,
		"b/index.html: <name> is no element that pages have: words in angle brackets belong into `code`",
		"b/index.html: it has a style of its own, which its Content-Security-Policy forbids",
		"b/index.html: it loads https://cdn.example/x.css",
		"b/index.html: it loads https://cdn.example/x.png",
		"b/index.html: src is a folder, or is none, other than the link says",
		"b/index.html: there is no #no in index.html",
		"b/index.html: there is no #no on it",
		`b/index.html: there is no no/index.html ("../no/")`,
		"b/index.html: there is no src/no.go in the repository",
		`b/index.html: two elements have the id "here"`,
		"s.css: it loads something: url(",
	}
	if !slices.Equal(got, want) {
		t.Errorf("DL-05: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestIndex: DL-05: the index has each heading with its own text, and its size is bounded.
func TestIndex(t *testing.T) {
	folder, _ := write(t, map[string]string{
		"out/index.html": `<main><h1>Not in it</h1></main>`,
		"out/a/index.html": `<p class="where">Operate <span>for all</span></p><article><h1 id="t">Title</h1>
			<details>not this</details><p>Lead.</p><h2 id="one">One<a class="anchor"></a></h2>
			<table><tr><td>left</td><td>right</td></tr></table><h3 id="two">Two</h3><p>` + strings.Repeat("word ", 5000) +
			`</p></article>`,
	})
	pages, err := readPages(folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := writeIndex(folder, pages); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(folder, indexName))
	if err != nil {
		t.Fatal(err)
	}
	var got index
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Pages) != 1 || got.Pages[0][0] != "a/" || got.Pages[0][1] != "Title" || got.Pages[0][2] != "Operate" {
		t.Errorf("DL-05: the pages are %v", got.Pages)
	}
	if len(got.Parts) != 3 || got.Parts[0][3] != "Lead." || got.Parts[1][3] != "left right" || got.Parts[1][1] != "one" {
		t.Fatalf("DL-05: the parts are %.200v", got.Parts)
	}
	if n := len(got.Parts[2][3].(string)); n > mostText || n < mostText-10 {
		t.Errorf("DL-05: a part has %d bytes", n)
	}
}
