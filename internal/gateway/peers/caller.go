package peers

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// The headers of a request from one replica to another.
const (
	headerResource = "Mcp-Authd-Resource" // the URL of the MCP server
	headerCaller   = "Mcp-Authd-Caller"   // whom the guard has let in; nobody without
)

// maxHeader bounds the headers of a request between replicas: the claims of a token are in them.
const maxHeader = 256 << 10

// passed are the headers of a client that a program in a session is served by. No credential is among them.
var passed = []string{
	"Accept", "Content-Type", mcp.HeaderSession, mcp.HeaderVersion, mcp.HeaderLastEvent,
}

// returned are the headers of an answer that go to the client.
var returned = []string{"Allow", "Cache-Control", "Content-Type", "Retry-After"}

func copyHeaders(to, from http.Header, names []string) {
	for _, name := range names {
		if values := from.Values(name); len(values) > 0 {
			to[http.CanonicalHeaderKey(name)] = values
		}
	}
}

// writeCaller writes what the guard knows of the caller.
func writeCaller(h http.Header, p *mcpresource.Principal) error {
	text, err := json.Marshal(p) // its fields; the credential is none of them
	if err != nil {
		return err
	}
	if h.Set(headerCaller, base64.StdEncoding.EncodeToString(text)); len(h.Get(headerCaller)) > maxHeader/2 {
		return errors.New("the claims of the token are too long to be passed to another replica")
	}
	return nil
}

// readCaller returns the caller that another replica has let in; nil for nobody.
func readCaller(h http.Header) (*mcpresource.Principal, error) {
	if h.Get(headerCaller) == "" {
		return nil, nil
	}
	text, err := base64.StdEncoding.DecodeString(h.Get(headerCaller))
	if err != nil {
		return nil, err
	}
	p := &mcpresource.Principal{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, err
	}
	if p.Subject == "" && p.ClientID == "" {
		return nil, errors.New("the caller has no name")
	}
	return p, nil
}
