package text

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/language"
)

//go:embed */*.json
var builtin embed.FS

// Default is the language that has every text, and that people get who asked for none of ours.
const Default = "en"

// Catalogues are all languages. They do not change.
type Catalogues struct {
	languages []*Language // the default first, then by tag
	matcher   language.Matcher
	known     func() recognizer
}

// Language is the texts of one language.
type Language struct {
	// Tag is its BCP 47 tag, as directories and the metadata name it.
	Tag   string
	tag   language.Tag
	files map[string]file
	under *Language // has the texts that the files do not have; nil: nothing has
}

// file is the texts of one page by their names, read when they are first asked for: a server begins
// with none of them, and shows few.
type file func() (map[string]Entry, error)

// Load reads the languages that are part of the program and over them those of more, which may
// be nil: texts that replace ours, and languages that we have not, in which an untranslated text
// is that of the language that they are a kind of (pt of pt-BR), or English. An error names the file and the text.
func Load(more fs.FS) (*Catalogues, error) {
	ours, err := ours()
	if err != nil || more == nil {
		return ours, err
	}
	all := make(map[string]*Language)
	for _, l := range ours.languages {
		all[l.Tag] = l
	}
	english := ours.languages[0]
	want, err := english.all()
	if err != nil {
		return nil, err
	}
	dirs, err := directories(more)
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		l, err := read(more, dir)
		if err == nil {
			err = partial(l, want)
		}
		if err != nil {
			return nil, err
		}
		l.under = nearest(all, l.tag, english)
		all[l.Tag] = l
	}
	c := newCatalogues(all)
	c.known = ours.known // what the program says, whatever is put over it
	return c, nil
}

// ours are the languages that are part of the program. That each of them has every text, and nothing
// else, is for a test to find: it is not looked at when a server starts.
var ours = sync.OnceValues(func() (*Catalogues, error) {
	all := make(map[string]*Language)
	dirs, err := directories(builtin)
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		l, err := read(builtin, dir)
		if err != nil {
			return nil, err
		}
		all[l.Tag] = l
	}
	c := newCatalogues(all)
	c.known = sync.OnceValue(func() recognizer { return newRecognizer(c.languages[0]) })
	return c, nil
})

func directories(tree fs.FS) (out []string, err error) {
	entries, err := fs.ReadDir(tree, ".")
	if err != nil {
		return nil, fmt.Errorf("text: list the languages: %w", err)
	}
	for _, d := range entries {
		if d.IsDir() {
			out = append(out, d.Name())
		}
	}
	return out, nil
}

// nearest is the language that has the texts which one does not have: itself as it is part of the
// program, pt for pt-BR, and else English.
func nearest(all map[string]*Language, tag language.Tag, english *Language) *Language {
	for ; !tag.IsRoot(); tag = tag.Parent() {
		if l, ok := all[tag.String()]; ok {
			return l
		}
	}
	return english
}

func newCatalogues(all map[string]*Language) *Catalogues {
	c := &Catalogues{languages: []*Language{all[Default]}}
	for _, tag := range slices.Sorted(maps.Keys(all)) {
		if tag != Default {
			c.languages = append(c.languages, all[tag])
		}
	}
	var tags []language.Tag
	for _, l := range c.languages {
		tags = append(tags, l.tag)
	}
	c.matcher = language.NewMatcher(tags)
	return c
}

// Languages are all languages: English, then the others by their tags.
func (c *Catalogues) Languages() []*Language { return c.languages }

// read lists the files of one language.
func read(tree fs.FS, dir string) (*Language, error) {
	tag, err := language.Parse(dir)
	if err != nil {
		return nil, fmt.Errorf("text: %s is not the tag of a language (BCP 47), such as de or pt-BR", dir)
	}
	l := &Language{Tag: tag.String(), tag: tag, files: make(map[string]file)}
	entries, err := fs.ReadDir(tree, dir)
	if err != nil {
		return nil, fmt.Errorf("text: list %s: %w", dir, err)
	}
	for _, f := range entries {
		page, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok {
			return nil, fmt.Errorf("text: %s is no file of texts: their names end in .json", path.Join(dir, f.Name()))
		}
		l.files[page] = sync.OnceValues(func() (map[string]Entry, error) {
			return readFile(tree, path.Join(dir, f.Name()))
		})
	}
	return l, nil
}

// maxFile bounds a file of texts, in bytes. Ours have a few thousand.
const maxFile = 1 << 20

func readFile(tree fs.FS, file string) (map[string]Entry, error) {
	if info, err := fs.Stat(tree, file); err == nil && info.Size() > maxFile {
		return nil, fmt.Errorf("text: %s is larger than 1 MiB", file)
	}
	body, err := fs.ReadFile(tree, file)
	if err != nil {
		return nil, fmt.Errorf("text: read %s: %w", file, err)
	}
	var texts map[string]json.RawMessage
	if err := json.Unmarshal(body, &texts); err != nil {
		return nil, fmt.Errorf("text: %s is not one JSON object: %w", file, err)
	}
	out := make(map[string]Entry, len(texts))
	for name, raw := range texts {
		entry, err := newEntry(raw)
		if err != nil {
			return nil, fmt.Errorf("text: %s: %s: %w", file, name, err)
		}
		out[name] = entry
	}
	return out, nil
}

// ownName is the key of the name by which people choose the language. One that an operator adds has its
// tag until they name it: "English" would stand in the choice twice.
const ownName = "layout.name"

// Entry is the text of a key ("signedout.lead").
func (l *Language) Entry(key string) (Entry, bool) {
	page, name, _ := strings.Cut(key, ".")
	for at := l; at != nil; at = at.under {
		if key == ownName && at.Tag != l.Tag {
			return Entry{Forms: map[string][]Piece{Other: {{Words: l.Tag}}}}, true
		}
		if e, ok := at.own(page)[name]; ok {
			return e, true
		}
	}
	return Entry{}, false
}

// own are the texts of a page that the files of l have. Those of a file that cannot be read are
// missing: Load has refused such a file of an operator, and a test finds one of ours.
func (l *Language) own(page string) map[string]Entry {
	if f, ok := l.files[page]; ok {
		texts, _ := f()
		return texts
	}
	return nil
}

// all are the texts that the files of l have, by key.
func (l *Language) all() (map[string]Entry, error) {
	out := make(map[string]Entry)
	for page, f := range l.files {
		texts, err := f()
		if err != nil {
			return nil, err
		}
		for name, e := range texts {
			out[page+"."+name] = e
		}
	}
	return out, nil
}

// Name is what the language calls itself.
func (l *Language) Name() string {
	if e, ok := l.Entry(ownName); ok {
		return e.Forms[Other][0].Words
	}
	return l.Tag
}

// Keys are the keys of all texts, in order.
func (l *Language) Keys() []string {
	all := make(map[string]bool)
	for ; l != nil; l = l.under {
		for page := range l.files {
			for name := range l.own(page) {
				all[page+"."+name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// RightToLeft reports a language that is written from right to left.
func (l *Language) RightToLeft() bool {
	script, _ := l.tag.Script()
	return slices.Contains([]string{"Adlm", "Arab", "Hebr", "Nkoo", "Rohg", "Syrc", "Thaa"}, script.String())
}
