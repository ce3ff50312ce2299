package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/metadata"
)

// answerOf returns the response with the output of an operation. The ETag is "" for changes.
func answerOf(v admin.Verb, out reflect.Value) (answer, string, *problem) {
	body, err := json.Marshal(out.Interface())
	if err != nil {
		return answer{}, "", &problem{kind: kindFault}
	}
	etag := ""
	if !v.Spec().HasBody() {
		etag = etagOf(body)
	}
	return answer{Status: http.StatusOK, Type: "application/json", Body: body}, etag, nil
}

// proposalAnswer returns the response for an operation that waits for a second administrator (RFC
// 9110 §15.3.3).
func proposalAnswer(p admin.Proposal) (answer, string, *problem) {
	body, err := json.Marshal(p)
	if err != nil {
		return answer{}, "", &problem{kind: kindFault}
	}
	return answer{Status: http.StatusAccepted, Type: "application/json", Body: body}, "", nil
}

// etagOf returns a strong entity tag.
func etagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`
}

// conditions are the preconditions of a change.
type conditions struct{ match string }

func conditionsOf(r *http.Request) conditions { return conditions{r.Header.Get("If-Match")} }

// precondition compares If-Match with the current state of the object in the path of a change (RFC
// 9110 §13.1.1).
func (o operation) precondition(ctx context.Context, by caller, c conditions, in reflect.Value) *problem {
	thing, about := admin.All().Shown(o.verb, in.Elem())
	if thing == nil {
		return invalid("this operation is about no thing that has an ETag: leave If-Match out")
	}
	out := reflect.New(thing.Output())
	if err := by.Call(ctx, thing, about, out.Interface()); err != nil {
		return o.explain(ctx, err)
	}
	_, now, refused := answerOf(thing, out.Elem())
	if refused != nil {
		return refused
	}
	if !metadata.MatchesETag(c.match, now) {
		return &problem{kind: kindChanged, detail: "Read it again, and decide by what it is now."}
	}
	return nil
}
