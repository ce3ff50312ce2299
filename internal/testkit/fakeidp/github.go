package fakeidp

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// gitHubRoutes registers the endpoints of a GitHub Enterprise Server.
func (u *Upstream) gitHubRoutes() {
	u.handle(Authorize, "GET /login/oauth/authorize", u.authorize)
	u.handle(Authorize, "POST /login/oauth/authorize", u.authorize)
	u.handle(Token, "POST /login/oauth/access_token", u.token)
	api := func(pattern string, answer func(p *Person) any) {
		u.handle(GitHub, "GET /api/v3"+pattern, func(w http.ResponseWriter, r *http.Request) {
			u.mu.Lock()
			defer u.mu.Unlock()
			t := u.bearer(r)
			if t == nil {
				writeJSON(w, http.StatusUnauthorized, map[string]string{"message": "Bad credentials"})
				return
			}
			w.Header().Set("X-OAuth-Scopes", strings.Join(t.scopes, ", "))
			u.page(w, r, answer(u.person(t.session.subject)))
		})
	}
	api("/user", func(p *Person) any {
		return map[string]any{"id": p.ID, "login": p.Login, "name": p.Name, "email": nil}
	})
	api("/user/emails", func(p *Person) any {
		return []any{
			map[string]any{"email": "old-" + p.Email, "verified": false, "primary": false},
			map[string]any{"email": p.Email, "verified": !p.Unverified, "primary": true},
		}
	})
	api("/user/orgs", func(p *Person) any {
		list := []any{}
		for _, o := range p.Organizations {
			list = append(list, map[string]any{"login": o})
		}
		return list
	})
	api("/user/teams", func(p *Person) any {
		list := []any{}
		for _, t := range p.Teams {
			org, slug, _ := strings.Cut(t, "/")
			list = append(list,
				map[string]any{"slug": slug, "name": slug, "organization": map[string]any{"login": org}})
		}
		return list
	})
	u.handle(Revoke, "DELETE /api/v3/applications/{client}/token", u.deleteToken)
}

// page sends one page of a list, as GitHub does.
func (u *Upstream) page(w http.ResponseWriter, r *http.Request, answer any) {
	list, ok := answer.([]any)
	if !ok {
		writeJSON(w, http.StatusOK, answer)
		return
	}
	size, number := 30, 1
	if n, err := strconv.Atoi(r.URL.Query().Get("per_page")); err == nil && n > 0 && n <= 100 {
		size = n
	}
	if n, err := strconv.Atoi(r.URL.Query().Get("page")); err == nil && n > 0 {
		number = n
	}
	from, to := min((number-1)*size, len(list)), min(number*size, len(list))
	if to < len(list) {
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?per_page=%d&page=%d>; rel="next"`, u.URL, r.URL.Path, size, number+1))
	}
	writeJSON(w, http.StatusOK, list[from:to])
}

// deleteToken implements GitHub's endpoint for deleting a token.
func (u *Upstream) deleteToken(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if id, secret, ok := r.BasicAuth(); !ok || id != u.ClientID || secret != u.ClientSecret ||
		r.PathValue("client") != u.ClientID {
		writeJSON(w, http.StatusNotFound, map[string]string{"message": "Not Found"})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
