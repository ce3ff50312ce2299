package peers

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// These are the headers of a request from one replica to another.
const (
	headerResource = "Mcp-Authd-Resource" // the MCP server's URL
	headerCaller   = "Mcp-Authd-Caller"   // the caller that the guard has admitted; absent for none
)

// maxHeader bounds the request headers between replicas, which contain the claims of a token.
const maxHeader = 256 << 10

// passed lists the client headers that go to the replica with the session. None is a credential.
var passed = []string{
	"Accept", "Content-Type", mcp.HeaderSession, mcp.HeaderVersion, mcp.HeaderLastEvent,
}

// returned lists the response headers that go to the client.
var returned = []string{"Allow", "Cache-Control", "Content-Type", "Retry-After"}

func copyHeaders(to, from http.Header, names []string) {
	for _, name := range names {
		if values := from.Values(name); len(values) > 0 {
			to[http.CanonicalHeaderKey(name)] = values
		}
	}
}

// writeCaller writes the guard's Principal into the headers.
func writeCaller(h http.Header, p *mcpresource.Principal) error {
	text, err := json.Marshal(p) // the fields do not include the credential
	if err != nil {
		return err
	}
	if h.Set(headerCaller, base64.StdEncoding.EncodeToString(text)); len(h.Get(headerCaller)) > maxHeader/2 {
		return errors.New("the claims of the token are too long to be passed to another replica")
	}
	return nil
}

// readCaller returns the caller that another replica has admitted, or nil for none.
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
