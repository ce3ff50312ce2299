package pages

// LanguageChoice is a language that a user can choose, with its native name.
type LanguageChoice struct{ Tag, Name string }

// foot is the view of the bottom of every page.
type foot struct {
	Action, Back string
	Languages    []LanguageChoice
	Current      string // its tag
}

func (p *Pages) foot() foot { return p.speaking(p.back) }

func (p *Pages) speaking(back string) foot { return foot{p.choose, back, p.choices, p.language.Tag} }

// Offering returns the same pages with a language menu at the bottom. The menu posts language and
// back, the address to return to, to /language below the prefix.
func (p *Pages) Offering(back string) *Pages {
	with := *p
	with.back = back
	return &with
}
