package attempt

import (
	"cmp"
	_ "embed"
	"strings"
	"sync"
)

// KnownFault describes a known fault of one client (docs/clients.md): which attempts it matches,
// and the remedy. In the patterns, * matches any text. Empty patterns match everything.
type KnownFault struct {
	Client   string `json:"client"`
	Versions string `json:"versions"` // the versions with the fault
	Fault    Fault  `json:"fault"`    // the fault of the attempt

	ID          string `json:"client_id"`
	Name        string `json:"client_name"`
	Agent       string `json:"agent"`
	RedirectURI string `json:"redirect_uri"`
	Path        string `json:"path"` // of the deciding request

	Text string `json:"text"` // the client's behavior
	// Advice for each side. Empty: the fault's general advice applies.
	Person   string `json:"person"`
	Operator string `json:"operator"`
	Author   string `json:"author"`
}

//go:embed clients.json
var clientsFile []byte

// KnownFaults returns the entries of clients.json, the source of the table in docs/clients.md. The
// first matching entry applies.
var KnownFaults = sync.OnceValue(func() (all []KnownFault) {
	mustRead(clientsFile, &all)
	return all
})

// recognize adds the known fault of the client to a verdict, if one matches.
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

// fits reports whether each pattern matches in one of the steps.
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

// like reports whether text matches a pattern, in which * matches any text.
func like(text, pattern string) bool {
	first, rest, more := strings.Cut(pattern, "*")
	text, found := strings.CutPrefix(text, first)
	if !found || !more {
		return found && text == ""
	}
	for { // every position where the rest may begin
		if rest == "" || like(text, rest) {
			return true
		}
		if text == "" {
			return false
		}
		text = text[1:]
	}
}
