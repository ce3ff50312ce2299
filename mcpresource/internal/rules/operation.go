package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/logged"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var (
	// ErrAmbiguousBody means that a JSON-RPC body is malformed, or that JSON decoders could read
	// different requests from it.
	ErrAmbiguousBody = errors.New("mcpresource: malformed or ambiguous JSON-RPC body")
	// ErrResourceURI means that a resource URI could name a resource with other rules: it has dot
	// segments or is not canonical (RFC 3986 §6.2.2).
	ErrResourceURI = errors.New("mcpresource: resource URI is not canonical")
)

// Operation is one JSON-RPC request or notification, as policies see it. A request that gives
// access to a prompt or resource indirectly counts as both. After completion/complete follows the
// prompts/get or resources/read of its reference, and after subscriptions/listen the
// resources/subscribe of each URI.
type Operation struct {
	Method    string          // such as "tools/call"; "" for a response or a GET
	Name      string          // params.name, or params.uri of resource methods
	Arguments json.RawMessage // params.arguments, nil if absent; see Args
}

func OperationOf(m message.Message) Operation {
	return Operation{Method: m.Method, Name: m.Name, Arguments: m.Arguments}
}

// Args decodes the arguments, for policies that depend on them. known are the names that the policy
// reads. Numbers are json.Number; without arguments the map is empty.
//
// It returns an error that wraps ErrAmbiguousBody if the server might see other arguments: a key is
// repeated, or differs from a known one only in case. The policy should then deny the operation. It
// also rejects more than 10,000 values.
func (op Operation) Args(known ...string) (map[string]any, error) {
	out, err := message.Arguments(op.Arguments, known...)
	if err != nil {
		return nil, Ambiguous(err)
	}
	return out, nil
}

func Ambiguous(err error) error { return fmt.Errorf("%w: %w", ErrAmbiguousBody, err) }

// CheckURI returns an error for a resource URI that must not be looked up, for example with a path
// that leads upward (RS-194).
func CheckURI(op Operation) error {
	if err := (message.Message{Method: op.Method, Name: op.Name}).CheckURI(); err != nil {
		return fmt.Errorf("%w: %w", ErrResourceURI, err)
	}
	return nil
}

// Recorded returns an operation as the audit log may store it: with arguments if asked for, a name of
// limited length, and redacted resource URIs.
func Recorded(op Operation, arguments bool) Operation {
	const longest = 256
	name := op.Name
	if message.IsResource(op.Method) {
		name = oauth.Redacted(name)
	}
	out := Operation{Method: logged.Cut(op.Method, longest), Name: logged.Cut(name, longest)}
	if arguments {
		out.Arguments = slices.Clone(op.Arguments)
	}
	return out
}
