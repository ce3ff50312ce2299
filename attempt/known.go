package attempt

import (
	"cmp"
	_ "embed"
	"strings"
	"sync"
)

// KnownFault is what is known of one client (docs/clients.md): which attempts have it, and what helps. In
// what it is recognized by, * stands for any text; what is empty does not matter.
type KnownFault struct {
	Client   string `json:"client"`
	Versions string `json:"versions"` // in which it was seen
	Fault    Fault  `json:"fault"`    // that the attempt has

	ID          string `json:"client_id"`
	Name        string `json:"client_name"`
	Agent       string `json:"agent"`
	RedirectURI string `json:"redirect_uri"`
	Path        string `json:"path"` // of the request that decided

	Text string `json:"text"` // what the client does
	// What each side does; empty: what is said of the fault holds.
	Person   string `json:"person"`
	Operator string `json:"operator"`
	Author   string `json:"author"`
}

//go:embed clients.json
var clientsFile []byte

// KnownFaults are those of clients.json, of which the table in docs/clients.md is made. The first that fits
// an attempt counts.
var KnownFaults = sync.OnceValue(func() (all []KnownFault) {
	mustRead(clientsFile, &all)
	return all
})

// recognize says of a verdict that it is a known fault of the client, where it is one.
func (v *Verdict) recognize(steps []Step) {
	if v.Fault == "" {
		return
	}
	for _, k := range KnownFaults() {
		if k.Fault != v.Fault || !k.fits(steps, v.Decided) {
			continue
		}
		v.Known = k.Client + " " + k.Versions + ": " + k.Text
		v.Advice = Advice{
			Person:   cmp.Or(k.Person, v.Advice.Person),
			Operator: cmp.Or(k.Operator, v.Advice.Operator),
			Client:   cmp.Or(k.Author, v.Advice.Client),
		}
		return
	}
}

// fits reports whether each thing by which the client is recognized is in one of the steps.
func (k KnownFault) fits(steps []Step, decided string) bool {
	for _, mark := range []struct {
		pattern string
		of      func(Step) string
	}{
		{k.ID, func(s Step) string { return s.Keys.Client }},
		{k.Name, func(s Step) string { return s.Keys.ClientName }},
		{k.Agent, func(s Step) string { return s.Request.Agent }},
		{k.RedirectURI, func(s Step) string { return cmp.Or(s.param("redirect_uri"), s.Answer.To) }},
		{k.Path, func(s Step) string {
			if s.Reference != decided {
				return ""
			}
			return s.Request.Path
		}},
	} {
		if mark.pattern != "" && !anyLike(steps, mark.pattern, mark.of) {
			return false
		}
	}
	return true
}

func anyLike(steps []Step, pattern string, of func(Step) string) bool {
	for _, s := range steps {
		if text := of(s); text != "" && like(text, pattern) {
			return true
		}
	}
	return false
}

// like reports whether a text is that of a pattern, in which * stands for any text.
func like(text, pattern string) bool {
	first, rest, more := strings.Cut(pattern, "*")
	text, found := strings.CutPrefix(text, first)
	if !found || !more {
		return found && text == ""
	}
	for { // each place at which the rest may begin
		if rest == "" || like(text, rest) {
			return true
		}
		if text == "" {
			return false
		}
		text = text[1:]
	}
}
