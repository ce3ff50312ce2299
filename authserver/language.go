package authserver

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/session"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// spokenPages are the pages in the language of their reader (PE-13).
type spokenPages struct {
	pages    *pages.Pages
	sessions *session.Manager
	paths    paths
}

// paramLocales contains the user's languages as known to the application (OpenID Connect Core
// §3.1.2.1, RFC 8414 §2).
const paramLocales = "ui_locales"

// For returns the pages in the language for a request: the user's own choice first, then the
// application's wish, then the browser's setting.
func (s *spokenPages) For(r *http.Request) *pages.Pages {
	chosen, asked := s.sessions.Languages(r)
	if r.URL.Path == s.paths.authorize { // replaces the wish of an earlier request
		asked = locales(r.URL)
	}
	pages := s.pages.For(chosen.Tag, asked, r.Header.Get("Accept-Language"))
	if r.Method != http.MethodGet || r.URL.Path == s.paths.setup || strings.HasPrefix(r.URL.Path, s.paths.callback) ||
		strings.HasPrefix(r.URL.Path, s.paths.link) {
		return pages // the page cannot be opened again, or its address is a secret
	}
	return pages.Offering(r.URL.RequestURI())
}

// languagePages changes the language.
type languagePages struct {
	browsers *entry.Browsers
	forms    *pageForms
	web      *spokenPages
}

// choose serves POST /language: the user chooses a language, which is stored in the browser. It is
// also stored in their account if they have recently authenticated. They return to the same page.
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

// chooseLanguage stores a choice in the account of a session's user, or in the browser until the
// user has authenticated.
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

// follow sets the language of a browser to the language of its current session's user. A choice
// that they made in this browser is stored in their account. A choice of an earlier user is
// ignored.
func (f *pageForms) follow(
	w http.ResponseWriter, r *http.Request, browsers *entry.Browsers, token storage.Hash, u storage.User,
) {
	chosen, _ := f.sessions.Languages(r)
	theirs := chosen.PendingOf(u.ID) || u.Locale == "" && chosen.PendingOf("")
	switch {
	case theirs && f.errors.web.pages.Offers(chosen.Tag):
		if f.chooseLanguage(w, r, browsers, token, chosen.Tag) != nil { // a failure does not refuse the sign-in
			f.sessions.ChooseLanguage(w, chosen.Tag, u.ID)
		}
	case chosen.Tag != u.Locale:
		f.sessions.FollowLanguage(w, u.Locale)
	}
}

// own returns an address if it belongs to this server, and otherwise the start page.
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

// ask remembers the languages of an authorization request for the following pages, and discards
// those of an earlier request.
func (s *spokenPages) ask(w http.ResponseWriter, r *http.Request, query url.Values) {
	tag, _ := s.pages.Speaks(query.Get(paramLocales))
	s.sessions.AskLanguage(w, r, tag)
}
