package web

// Party is a client or an MCP server as a person is told of it.
type Party struct {
	// Name is the display name. Empty means that it has none.
	Name string
	// Host is what identifies the party beyond its name: for an MCP server its host,
	// for a client that is identified by a document the host of that document.
	Host string
	// URL is the full address, for a client its client_id.
	URL string
}

// Scope is one thing that an application asks for.
type Scope struct {
	Name, Description string
	// New says that the person approved this application before, but not this scope.
	New bool
}

// Login is the view of the sign-in page.
type Login struct {
	Action string // where the form is posted
	Step   string // sealed state, returned in the field "step"
	// Username fills the field again after a failed attempt.
	Username string
	// Problem is what was wrong with the last attempt, "" at first.
	Problem string
	// Client and Resource say what the person signs in for; both empty: for this
	// server itself.
	Client, Resource Party
	// FormTargets are the origins ("https://claude.ai") and schemes ("cursor:") that
	// the post may end at through redirects; see policy.
	FormTargets []string
}

// Consent is the view of the approval page.
type Consent struct {
	Action, Step string
	Client       Party
	// SelfRegistered says that nobody but the client itself vouches for its name.
	SelfRegistered bool
	// RedirectHost is the host the answer goes to, or a private-use scheme with its
	// colon ("cursor:").
	RedirectHost       string
	RedirectIsLoopback bool
	RedirectURI        string
	Resource           Party
	Scopes             []Scope
	// StaySignedIn says that the application keeps its access while the person is away.
	StaySignedIn bool
	Username     string
	// SignOutAction and SignOutStep are the form behind "Not you?".
	SignOutAction, SignOutStep string
	FormTargets                []string
}

// Error is the view of the error page.
type Error struct {
	Title, Message string
	Client         string // what the application calls itself, or looks like; may be empty
	Advice         string // what to do next
	Code           string // the protocol's name for it, such as invalid_client
	RequestID      string // finds the event in the operator's log
}

// Stopped is the view of a refused request with a way back to the application.
type Stopped struct {
	Title, Message, Code string
	Client               Party
	RedirectHost         string
	// ReturnURL is the redirect URI with the error response. It becomes a link only
	// if it is http, https or a private-use scheme.
	ReturnURL            string
	ReturnIsCustomScheme bool
}

// Handoff is the view of the page that opens an application after approval.
type Handoff struct {
	Client      Party
	URL, Scheme string
}

// Setup is the view of the page that makes the first administrator.
type Setup struct {
	Action, Step      string
	Username, Problem string
	// Token fills the token field again after a failed attempt: by then it is gone
	// from the address.
	Token string
}

// SetupDone is the view of the page after setup.
type SetupDone struct{ Username, Issuer string }

// Home is the view of the start page.
type Home struct {
	Username  string // "" when nobody is signed in
	Issuer    string
	Resources []Party
	// SignOutAction and Step are the sign-out form.
	SignOutAction, Step string
}
