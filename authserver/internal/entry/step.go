package entry

import (
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Step is the next response to a browser during a sign-in or another authentication, one of the
// types of this package with this method. A step is data; the edge writes it.
type Step interface{ step() }

// Login is the page where users sign in or choose a provider. If a client's metadata document is
// unread, only its id is known.
type Login struct {
	To        Destination
	Client    storage.Client // zero for the start page and for /connect
	Resource  storage.Resource
	EndNotice sentence.Sentence // why the user's session ended, or ""
	LoginHint string            // the expected user, according to the client
}

// Continue sends the browser to a page of this server.
type Continue struct{ To Destination }

func (Login) step()    {}
func (Continue) step() {}

// Destination is where a user goes after signing in: to an authorization request, a request at
// /connect or /device, or a page of this server. Forms carry it sealed.
type Destination struct {
	Query   form.Query `json:"q,omitempty"`
	Connect string     `json:"c,omitempty"` // sealed by connect.Links
	Device  string     `json:"d,omitempty"` // the code of a waiting device
	// Page is a path below the issuer; "": the account page.
	Page string `json:"p,omitempty"`
	// ACR is the authentication context class that the user has to reach on the way, see
	// oauth.ACRs; "": none.
	ACR string `json:"a,omitempty"`
}
