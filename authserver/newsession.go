package authserver

import (
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/session"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// newSession is a browser that may be about to get a session.
type newSession struct {
	forms *pageForms
	r     *http.Request
	begun session.Minted
	user  storage.User
}

// mint is an entry.Mint.
func (x *newSession) mint(u storage.User, methods []string) storage.Session {
	x.user, x.begun = u, x.forms.mint(x.r, u.ID, methods...)
	return x.begun.Session
}

// signedIn continues to the destination of a user who has signed in, or writes the step before
// that.
func (s *steps) signedIn(w http.ResponseWriter, r *http.Request, x *newSession, step entry.Step) {
	switch step.(type) {
	case entry.Continue, entry.StepUp: // the session has begun
		if err := s.forms.hold(w, r, s.views.flow.Browsers, x.begun, x.user); err != nil {
			s.errors.show(w, r, http.StatusServiceUnavailable, err)
			return
		}
		s.forms.sessions.Remember(w, r, x.user.Name)
	}
	s.writeEntry(w, r, step)
}
