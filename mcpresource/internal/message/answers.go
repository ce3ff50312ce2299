package message

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/strictjson"
)

// ShowsLinks reports whether a client's capabilities state that it can show links to the user:
// elicitation in mode url (RS-180).
func ShowsLinks(capabilities json.RawMessage) bool {
	var c struct {
		Elicitation struct {
			URL *struct{} `json:"url"`
		} `json:"elicitation"`
	}
	return len(capabilities) > 0 && json.Unmarshal(capabilities, &c) == nil && c.Elicitation.URL != nil
}

// Member returns a member of an object in valid JSON, or nil.
func Member(object json.RawMessage, name string) json.RawMessage {
	if len(object) == 0 {
		return nil
	}
	all, err := members(object, name)
	if err != nil {
		return nil
	}
	return all.Get(name)
}

// kept holds the parameters of a waiting call, for its requestState. It needs no protection,
// because the client provides the values both times.
type kept struct {
	State     json.RawMessage `json:"s,omitempty"`
	Responses json.RawMessage `json:"r,omitempty"`
}

// KeepAnswers returns a requestState with the answers and state of a call, which TakeAnswer
// restores. It returns "" if the call has neither. Parse must have accepted body.
func KeepAnswers(body []byte, prefix string) string {
	params := Member(bytes.Trim(body, " \t\r\n"), "params")
	k := kept{Member(params, "requestState"), Member(params, "inputResponses")}
	if k.State == nil && k.Responses == nil {
		return ""
	}
	raw, _ := json.Marshal(k) // already valid JSON
	return prefix + base64.RawURLEncoding.EncodeToString(raw)
}

// TakeAnswer removes the answer to a question from the inputResponses of a request (2026-07-28),
// and restores the values that KeepAnswers stored. rest is the request as before the question.
// action is "" without an answer. Parse must have accepted body; it also accepts rest.
func TakeAnswer(body []byte, question, prefix string) (action string, rest []byte, err error) {
	whole := bytes.Trim(body, " \t\r\n")
	params := Member(whole, "params")
	if params == nil {
		return "", body, nil
	}
	with := map[string]json.RawMessage{}
	responses := Member(params, "inputResponses")
	if len(responses) > 0 && responses[0] == '{' {
		all, err := members(responses, question)
		if err != nil {
			return "", nil, err
		}
		if own := all.Get(question); own != nil {
			if action, err = actionOf(own); err != nil {
				return "", nil, err
			}
			with["inputResponses"] = nil
			if len(all) > 1 {
				with["inputResponses"] = replace(responses, map[string]json.RawMessage{question: nil})
			}
		}
	}
	if state, ok := plainString(Member(params, "requestState")); ok && strings.HasPrefix(state, prefix) {
		k, err := readKept(strings.TrimPrefix(state, prefix))
		if err != nil {
			return "", nil, err
		}
		with["requestState"], with["inputResponses"] = k.State, k.Responses
	}
	if len(with) == 0 {
		return "", body, nil
	}
	rest = replace(whole, map[string]json.RawMessage{"params": replace(params, with)})
	_, err = Parse(rest)
	return action, rest, err
}

// actionOf returns the user's action (ElicitResult).
func actionOf(answer json.RawMessage) (string, error) {
	if answer[0] != '{' {
		return "", errors.New("an answer is not an object")
	}
	all, err := members(answer, "action")
	if err != nil {
		return "", err
	}
	switch action, _ := plainString(all.Get("action")); action {
	case "accept", "decline", "cancel":
		return action, nil
	}
	return "", errors.New("the action of an answer is not accept, decline or cancel")
}

func readKept(text string) (k kept, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return k, errors.New("the state is not as it was sent")
	}
	if err := checkDepth(raw); err != nil {
		return k, err
	}
	all, err := object(raw, "s", "r")
	if err != nil {
		return k, err
	}
	return kept{all.Get("s"), all.Get("r")}, nil
}

// replace returns an object in valid JSON with new values for some members, at their positions. nil
// removes a member. New members come last.
func replace(b []byte, with map[string]json.RawMessage) []byte {
	var out bytes.Buffer
	put := func(key, value []byte) {
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		out.Write(key)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('{')
	seen := map[string]bool{}
	_ = strictjson.Each(b, func(key, value []byte) error { // valid, and an object
		name, _ := strictjson.Unquote(key)
		if other, ok := with[name]; ok {
			seen[name], value = true, other
		}
		if value != nil {
			put(key, value)
		}
		return nil
	})
	for _, name := range []string{"inputResponses", "requestState"} {
		if with[name] != nil && !seen[name] {
			put([]byte(`"`+name+`"`), with[name])
		}
	}
	out.WriteByte('}')
	return out.Bytes()
}
