package authserver

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/session"
	"github.com/mcp-authd/mcp-authd/web"
)

// spokenPages are the pages in the language of whom they are for (PE-13).
type spokenPages struct {
	pages     *web.Pages
	sessions  *session.Manager
	authorize string // where requests ask for languages
}

// paramLocales is what an application knows of the languages of the person (OpenID Connect Core
// §3.1.2.1, RFC 8414 §2).
const paramLocales = "ui_locales"

// For has the pages in the language for a request: the person's own choice comes before the wish
// of the application, and that before what the browser is set to.
func (s *spokenPages) For(r *http.Request) *web.Pages {
	chosen, asked := s.sessions.Languages(r)
	if r.URL.Path == s.authorize { // what an earlier request asked for is over
		asked = locales(r.URL)
	}
	return s.pages.For(chosen, asked, r.Header.Get("Accept-Language"))
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
