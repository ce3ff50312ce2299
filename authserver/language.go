package authserver

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/session"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/web"
)

// spokenPages are the pages in the language of whom they are for (PE-13).
type spokenPages struct {
	pages    *web.Pages
	sessions *session.Manager
	paths    paths
}

// paramLocales is what an application knows of the languages of the person (OpenID Connect Core
// §3.1.2.1, RFC 8414 §2).
const paramLocales = "ui_locales"

// For has the pages in the language for a request: the person's own choice comes before the wish
// of the application, and that before what the browser is set to.
func (s *spokenPages) For(r *http.Request) *web.Pages {
	chosen, asked := s.sessions.Languages(r)
	if r.URL.Path == s.paths.authorize { // what an earlier request asked for is over
		asked = locales(r.URL)
	}
	pages := s.pages.For(chosen.Tag, asked, r.Header.Get("Accept-Language"))
	if r.Method != http.MethodGet || r.URL.Path == s.paths.setup || strings.HasPrefix(r.URL.Path, s.paths.callback) ||
		strings.HasPrefix(r.URL.Path, s.paths.link) {
		return pages // the page cannot be opened again, or its address is a secret
	}
	return pages.Offering(r.URL.RequestURI())
}

// languagePages are where people choose a language.
type languagePages struct {
	browsers *entry.Browsers
	forms    *pageForms
	web      *spokenPages
}

// choose serves POST /language: the person chooses a language, which is kept in the browser and, when
// they have proved just now who they are, at their account. They go on from the same page.
func (p *languagePages) choose(w http.ResponseWriter, r *http.Request) {
	form, err := readBody(r)
	if tag := form.Get("language"); err == nil && p.web.pages.Offers(tag) {
		if err := p.forms.chooseLanguage(w, r, p.browsers, p.forms.token(r), tag); err != nil {
			p.forms.errors.show(w, r, pageStatus(oauth.AsError(err)), err)
			return
		}
	}
	redirect(w, p.web.own(form.Get("back")))
}

// chooseLanguage keeps a choice at the account of the person of a session, or in the browser until they
// have proved who they are.
func (f *pageForms) chooseLanguage(
	w http.ResponseWriter, r *http.Request, browsers *entry.Browsers, token storage.Hash, tag string,
) error {
	switch userID, kept, err := browsers.SetLanguage(r.Context(), token, tag); {
	case err != nil:
		return err
	case kept:
		f.sessions.FollowLanguage(w, tag)
	default:
		f.sessions.ChooseLanguage(w, tag, userID)
	}
	return nil
}

// follow has the pages in a browser in the language of the person of its current session. What they chose
// in this browser is kept at their account. What the person before chose is not theirs.
func (f *pageForms) follow(
	w http.ResponseWriter, r *http.Request, browsers *entry.Browsers, token storage.Hash, u storage.User,
) {
	chosen, _ := f.sessions.Languages(r)
	theirs := chosen.PendingOf(u.ID) || u.Locale == "" && chosen.PendingOf("")
	switch {
	case theirs && f.errors.web.pages.Offers(chosen.Tag):
		if f.chooseLanguage(w, r, browsers, token, chosen.Tag) != nil { // which does not refuse the sign-in
			f.sessions.ChooseLanguage(w, chosen.Tag, u.ID)
		}
	case chosen.Tag != u.Locale:
		f.sessions.FollowLanguage(w, u.Locale)
	}
}

// own is an address when it is one of ours, and otherwise the start page.
func (s *spokenPages) own(back string) string {
	u, err := url.Parse(back)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" ||
		path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") && u.Path != "/" ||
		!strings.HasPrefix(u.Path, s.paths.home) || strings.ContainsAny(back, "\\") {
		return s.paths.home
	}
	return u.RequestURI()
}

func locales(u *url.URL) string {
	if !strings.Contains(u.RawQuery, paramLocales) {
		return ""
	}
	return u.Query().Get(paramLocales)
}

// ask remembers the languages that an authorization request asks for, for the pages that follow,
// and forgets those of an earlier request.
func (s *spokenPages) ask(w http.ResponseWriter, r *http.Request, query url.Values) {
	tag, _ := s.pages.Speaks(query.Get(paramLocales))
	s.sessions.AskLanguage(w, r, tag)
}
