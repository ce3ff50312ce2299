package mcpresource

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"
)

var (
	// ErrAmbiguousBody means that a JSON-RPC body is malformed, or that two JSON decoders
	// could read different requests out of it.
	ErrAmbiguousBody = errors.New("mcpresource: malformed or ambiguous JSON-RPC body")
	// ErrResourceURI means that a resource could be meant that other rules are for: the
	// URI has dot segments, or is not in its canonical form (RFC 3986 §6.2.2).
	ErrResourceURI = errors.New("mcpresource: resource URI is not canonical")
)

// Operation is one JSON-RPC request or notification as the policy sees it. What leads
// to a prompt or resource by another way counts as both: after completion/complete
// comes the prompts/get or resources/read of what it completes, and after
// subscriptions/listen the resources/subscribe of each URI.
type Operation struct {
	Method    string          // such as "tools/call"; "" for a response or a GET
	Name      string          // params.name, or params.uri of resource methods
	Arguments json.RawMessage // params.arguments, nil when absent; see Args
}

func operationOf(m message.Message) Operation {
	return Operation{Method: m.Method, Name: m.Name, Arguments: m.Arguments}
}

// Args decodes the arguments, for a policy that depends on them: known are the names it
// goes by. Numbers are json.Number; no arguments are an empty map.
//
// It returns an error that wraps ErrAmbiguousBody, and the operation should then be
// denied, where the server might see other arguments: when a key occurs twice, or
// differs from a known one in case alone. It refuses more than 10,000 values as well.
func (op Operation) Args(known ...string) (map[string]any, error) {
	out, err := message.Arguments(op.Arguments, known...)
	if err != nil {
		return nil, ambiguous(err)
	}
	return out, nil
}

func ambiguous(err error) error { return fmt.Errorf("%w: %w", ErrAmbiguousBody, err) }

// checkURI refuses an operation on a resource that no table should be asked about, such as one
// whose path leads up (RS-194).
func (op Operation) checkURI() error {
	if err := (message.Message{Method: op.Method, Name: op.Name}).CheckURI(); err != nil {
		return fmt.Errorf("%w: %w", ErrResourceURI, err)
	}
	return nil
}
