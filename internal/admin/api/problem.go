package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// kind identifies a problem for programs: the last part of its type.
type kind string

// The kinds of problems.
const (
	kindInvalid     kind = "invalid"
	kindUnknown     kind = "unauthenticated"
	kindStale       kind = "stale-proof"
	kindScope       kind = "insufficient-scope"
	kindForbidden   kind = "forbidden"
	kindNotFound    kind = "not-found"
	kindMethod      kind = "method-not-allowed"
	kindConflict    kind = "conflict"
	kindChanged     kind = "changed"
	kindTooLarge    kind = "too-large"
	kindMedia       kind = "unsupported-media-type"
	kindReused      kind = "key-reused"
	kindRunning     kind = "running"
	kindUnsure      kind = "outcome-unknown"
	kindUnreadable  kind = "answer-unreadable"
	kindLimited     kind = "too-many-requests"
	kindFault       kind = "fault"
	kindUnavailable kind = "unavailable"
	kindUnkept      kind = "unkept"
)

// kinds maps each kind to its status and title.
var kinds = map[kind]struct {
	status int
	title  string
}{
	kindInvalid:     {http.StatusBadRequest, "The input cannot be used"},
	kindUnknown:     {http.StatusUnauthorized, "A token is needed"},
	kindStale:       {http.StatusUnauthorized, "The person has to sign in again"},
	kindScope:       {http.StatusForbidden, "The token lacks a scope"},
	kindForbidden:   {http.StatusForbidden, "The role may not do this"},
	kindNotFound:    {http.StatusNotFound, "There is no such thing"},
	kindMethod:      {http.StatusMethodNotAllowed, "The path does not have this method"},
	kindConflict:    {http.StatusConflict, "Something stands in the way"},
	kindChanged:     {http.StatusPreconditionFailed, "It has changed since it was read"},
	kindTooLarge:    {http.StatusRequestEntityTooLarge, "The body is too large"},
	kindMedia:       {http.StatusUnsupportedMediaType, "The body is not JSON"},
	kindReused:      {http.StatusUnprocessableEntity, "The key was used for something else"},
	kindRunning:     {http.StatusConflict, "The same request is being carried out"},
	kindUnsure:      {http.StatusConflict, "It is not known whether this was carried out"},
	kindUnreadable:  {http.StatusConflict, "What became of this cannot be read any more"},
	kindLimited:     {http.StatusTooManyRequests, "Too many requests"},
	kindFault:       {http.StatusInternalServerError, "The server has failed"},
	kindUnkept:      {http.StatusServiceUnavailable, "The audit log does not have what was done"},
	kindUnavailable: {http.StatusServiceUnavailable, "The server cannot tell now"},
}

// typePrefix starts the type of each problem.
const typePrefix = "urn:mcp-authd:problem:"

// Problem is a problem document (RFC 9457).
type Problem struct {
	Type   string `json:"type" jsonschema:"what went wrong, for programs: urn:mcp-authd:problem: and a word"`
	Title  string `json:"title" jsonschema:"the same for people"`
	Status int    `json:"status" jsonschema:"the HTTP status"`
	Detail string `json:"detail,omitempty" jsonschema:"what happened here, and what to do"`
}

// problem is a problem before it is written.
type problem struct {
	kind      kind
	detail    string
	challenge *oauth.BearerChallenge // nil for none
	after     time.Duration          // when to retry; 0 for unknown
	partly    bool                   // something may have been done
}

// untouched reports whether the request was refused for a temporary reason, before anything was
// done.
func (p problem) untouched() bool {
	if p.partly {
		return false
	}
	switch p.kind {
	case kindUnknown, kindStale, kindScope, kindForbidden, kindChanged, kindLimited, kindUnavailable:
		return true
	}
	return false
}

// answer returns the problem as a response, without its headers.
func (p problem) answer() answer {
	k := kinds[p.kind]
	doc := Problem{Type: typePrefix + string(p.kind), Title: k.title, Status: k.status, Detail: p.detail}
	body, err := json.Marshal(doc)
	if err != nil {
		panic("api: " + err.Error()) // strings and a number always encode
	}
	return answer{Status: k.status, Type: "application/problem+json", Body: append(body, '\n')}
}

func write(w http.ResponseWriter, p problem) {
	if p.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((p.after+time.Second-1)/time.Second)))
	}
	p.answer().write(w)
}

// auditAway is the retry delay while the audit log or the database accepts no writes.
const auditAway = 5 * time.Second

const databaseBusy = "Nothing was done, because the database is busy. Try again later."

// explain returns the problem for the error of an operation. It returns false for an internal
// error.
func explain(err error) (*problem, bool) {
	var stale *admin.StaleError
	if errors.As(err, &stale) {
		return &problem{kind: kindStale, detail: stale.Error(), challenge: &oauth.BearerChallenge{
			Error: oauth.InsufficientAuthentication, MaxAge: stale.MaxAge,
			Description: "The person has to have proved who they are more recently.",
		}}, true
	}
	if errors.Is(err, admin.ErrUnavailable) {
		return &problem{kind: kindUnavailable, detail: err.Error(), after: auditAway}, true
	}
	if errors.Is(err, admin.ErrInterrupted) {
		return &problem{kind: kindUnavailable, detail: err.Error(), after: auditAway, partly: true}, true
	}
	if errors.Is(err, storage.ErrBusy) { // outside an operation: without the store, nothing was changed
		return &problem{kind: kindUnavailable, detail: databaseBusy, after: auditAway}, true
	}
	for _, known := range []struct {
		err  error
		kind kind
	}{
		{admin.ErrForbidden, kindForbidden},
		{admin.ErrNotFound, kindNotFound},
		{admin.ErrConflict, kindConflict},
		{admin.ErrInvalid, kindInvalid},
		{admin.ErrUnkept, kindUnkept},
	} {
		if errors.Is(err, known.err) {
			return &problem{kind: known.kind, detail: err.Error()}, true
		}
	}
	return &problem{kind: kindFault, detail: "The reason is in the log of the server."}, false
}
