package entry

import (
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Step is what a browser gets next that is about to have a session, or whose person has to prove who
// they are: it is one of the types of this package that say so. A step is data; the edge writes it.
type Step interface{ step() }

// Login is the page on which people sign in, or choose where. Of a client whose
// document is unread only its id is known.
type Login struct {
	To        Destination
	Client    storage.Client // none for the start page and for /connect
	Resource  storage.Resource
	EndNotice string // why the person is no longer signed in, "" for no special reason
	LoginHint string // who the client says will sign in
}

// Continue sends the browser to a page of ours.
type Continue struct{ To Destination }

func (Login) step()    {}
func (Continue) step() {}

// Destination is where a person goes after signing in: on with an authorization request, with
// a request at /connect or at /device, or to a page of ours. It travels sealed in forms.
type Destination struct {
	Query   form.Query `json:"q,omitempty"`
	Connect string     `json:"c,omitempty"` // sealed by connect.Links
	Device  string     `json:"d,omitempty"` // the code of a device that waits for an answer
	// Page is the path of a page of ours, below that of the issuer; "": the account page.
	Page string `json:"p,omitempty"`
	// ACR is what the person has to reach on the way there, see oauth.ACRs; "": nothing.
	ACR string `json:"a,omitempty"`
}
