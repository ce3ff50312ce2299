package toolwatch

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/strictjson"
)

// maxText is the maximum length of a definition that is stored for people to read.
const maxText = 32 << 10 // bytes

// maxDepth is the maximum nesting of a definition whose members are put in order.
const maxDepth = 1000

// canonical returns the form of a definition that is compared: all members, ordered by name,
// without white space. A definition that decoders could read differently is compared in its raw
// form. text is "" if it is too long to be stored. digest covers the whole definition.
func canonical(entry []byte) (text string, digest storage.Hash) {
	out := entry
	v, err := strictjson.Value(entry, strictjson.Limits{Depth: maxDepth, Names: strictjson.Exact})
	if err == nil {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if e.Encode(v) == nil {
			out = bytes.TrimSpace(b.Bytes())
		}
	}
	if len(out) <= maxText {
		text = string(bytes.ToValidUTF8(out, []byte("\ufffd")))
	}
	return text, sha256.Sum256(out)
}
