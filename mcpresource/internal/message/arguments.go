package message

import (
	"encoding/json"

	"github.com/mcp-authd/mcp-authd/internal/strictjson"
)

// maxValues is the maximum number of values in the arguments of a call.
const maxValues = 10_000

// Arguments decodes the arguments of a call. known are the names that the caller reads. Numbers are
// json.Number; without arguments the map is empty. It also rejects more than 10,000 values.
func Arguments(raw json.RawMessage, known ...string) (map[string]any, error) {
	if raw == nil {
		return map[string]any{}, nil
	}
	v, err := strictjson.Value(raw, strictjson.Limits{
		Depth: maxDepth, Values: maxValues, Names: strictjson.Exact,
	})
	if err != nil {
		return nil, err
	}
	out, ok := v.(map[string]any)
	if !ok {
		return nil, strictjson.ErrKind
	}
	for name := range out {
		if err := strictjson.CheckName(name, known...); err != nil { // two known names may differ only in case
			return nil, err
		}
	}
	return out, nil
}
