package message

import (
	"encoding/json"
	"errors"

	"github.com/mcp-authd/mcp-authd/internal/strictjson"
)

// maxURIs is the maximum number of resources that one message may listen to.
const maxURIs = 1000

// implied returns the messages that a message implies: completions reveal content of a prompt, and
// listening to a resource subscribes to it.
func implied(method string, params strictjson.Members) ([]Message, error) {
	switch method {
	case "completion/complete":
		if ref := params.Get("ref"); ref != nil {
			return completed(ref)
		}
	case "subscriptions/listen":
		if n := params.Get("notifications"); n != nil {
			return listened(n)
		}
	}
	return nil, nil
}

// completed uses the members and not the type, which a server may ignore. A completion reveals no
// more than its prompt or resource (RS-190).
func completed(b json.RawMessage) (messages []Message, err error) {
	ref, err := members(b, "type", "name", "uri")
	if err != nil {
		return nil, err
	}
	for _, to := range [][2]string{{"name", "prompts/get"}, {"uri", "resources/read"}} {
		v := ref.Get(to[0])
		if v == nil {
			continue
		}
		m, ok := Message{Method: to[1]}, false
		if m.Name, ok = plainString(v); !ok {
			return nil, errors.New(to[0] + " is not a string")
		}
		messages = append(messages, m)
	}
	return messages, nil
}

func listened(b json.RawMessage) ([]Message, error) {
	wanted, err := members(b, "resourceSubscriptions", "taskIds")
	list := wanted.Get("resourceSubscriptions")
	if err != nil || list == nil {
		return nil, err
	}
	var uris []json.RawMessage
	if err := json.Unmarshal(list, &uris); err != nil || len(uris) > maxURIs {
		return nil, errors.New("resourceSubscriptions is not an array of up to 1000 URIs")
	}
	messages := make([]Message, len(uris))
	for i, raw := range uris {
		uri, ok := plainString(raw)
		if !ok {
			return nil, errors.New("a URI is not a string")
		}
		messages[i] = Message{Method: "resources/subscribe", Name: uri}
	}
	return messages, nil
}
