package thirdparty

import (
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/session"
)

// connector is a Connector made ready: defaults filled in, rules compiled, its provider
// at hand.
type connector struct {
	Connector
	provider
}

// surroundings are what connectors share.
type surroundings struct {
	issuer      string // ours
	productName string
	now         func() time.Time
}

// newConnector checks a configuration and makes it ready. It talks to nobody. Errors
// wrap ErrConfig and name the field.
func newConnector(c Connector, s surroundings) (*connector, error) {
	return nil, errors.New("to be written")
}

// redirectURI is what has to be registered at the provider.
func (c *connector) redirectURI() string { return "" }

// public is the connector as people see it.
func (c *connector) public() session.Provider { return session.Provider{} }

// routes reports whether people of a domain, in lower case, belong to the connector.
func (c *connector) routes(domain string) bool { return false }

// admit checks the rules for who may sign in. errNotAllowed: they do not hold for p.
func (c *connector) admit(p profile) error { return nil }

// permit returns which of the scopes of a resource the person may have.
func (c *connector) permit(p profile, resource string, scopes oauth.Scopes) oauth.Scopes {
	return scopes
}

// errNotAllowed: the rules of the connector do not hold for the person.
var errNotAllowed = errors.New("the rules of the connector do not admit this person")
