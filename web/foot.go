package web

// LanguageChoice is a language that a person can choose, by its own name.
type LanguageChoice struct{ Tag, Name string }

// foot is the view of the end of every page.
type foot struct {
	Action, Back string
	Languages    []LanguageChoice
	Current      string // its tag
}

func (p *Pages) foot() foot { return p.speaking(p.back) }

func (p *Pages) speaking(back string) foot { return foot{p.choose, back, p.choices, p.language.Tag} }

// Offering has the same pages with a choice of languages at their end. It is posted to /language
// below the prefix, as language and back: the address of the page, to go on from.
func (p *Pages) Offering(back string) *Pages {
	with := *p
	with.back = back
	return &with
}
