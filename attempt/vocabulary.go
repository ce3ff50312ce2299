package attempt

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"

	"github.com/mcp-authd/mcp-authd/web/text"
)

// vocabulary is what may be published as it is: names that everybody knows, of clients and of the
// protocol, and the words of our own sentences. It is made of public.json; a new name is a word there.
type vocabulary struct {
	Names    []string `json:"names"`    // of clients
	Products []string `json:"products"` // of User-Agent, in lower case
	Hosts    []string `json:"hosts"`    // of clients, where their redirect URIs and documents are
	Schemes  []string `json:"schemes"`  // of redirect URIs
	Values   []string `json:"values"`   // of parameters
	Segments []string `json:"segments"` // words of paths
	Words    []string `json:"words"`    // of descriptions, beside those of the pages
}

//go:embed public.json
var publicFile []byte

var public = sync.OnceValue(func() (v vocabulary) {
	mustRead(publicFile, &v)
	return v
})

// sentenceWords are the words that a description may have.
var sentenceWords = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, w := range public().Words {
		all[w] = true
	}
	pages, err := text.Load(nil)
	if err != nil { // of ours: tests read it
		return all
	}
	english := pages.Match()
	for _, key := range english.Keys() {
		entry, _ := english.Entry(key)
		for _, piece := range entry.In(text.Other) {
			for _, w := range word.FindAllString(piece.Words, -1) {
				all[strings.ToLower(w)] = true
			}
		}
	}
	return all
})

var word = regexp.MustCompile(`[A-Za-z][A-Za-z_']*[A-Za-z]|[A-Za-z]`)
