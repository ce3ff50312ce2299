package attempt

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"

	"github.com/mcp-authd/mcp-authd/internal/text"
)

// vocabulary lists texts that can be published unchanged: well-known names of clients and of the
// protocol, and the words of this server's sentences. Its source is public.json; add new names
// there.
type vocabulary struct {
	Names    []string `json:"names"`    // of clients
	Products []string `json:"products"` // products in a User-Agent, in lower case
	Hosts    []string `json:"hosts"`    // hosts of clients' redirect URIs and documents
	Schemes  []string `json:"schemes"`  // of redirect URIs
	Values   []string `json:"values"`   // of parameters
	Segments []string `json:"segments"` // words in paths
	Words    []string `json:"words"`    // words in descriptions, in addition to the words of the pages
}

//go:embed public.json
var publicFile []byte

var public = sync.OnceValue(func() (v vocabulary) {
	mustRead(publicFile, &v)
	return v
})

// sentenceWords returns the words that a description may contain.
var sentenceWords = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, w := range public().Words {
		all[w] = true
	}
	pages, err := text.Load(nil)
	if err != nil { // the embedded pages are checked by tests
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
