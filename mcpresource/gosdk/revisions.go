package gosdk

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
)

// shape describes the members of an object that a revision of the protocol added, and members that
// contain such.
type shape map[string]member

type member struct {
	since string                     // the revision that added it; "" if all have it
	of    shape                      // of its value, or of each list element
	early func(json.RawMessage) bool // reports whether a value is valid before 2026-07-28; may be nil
}

// The additions of each revision to messages of servers, from the differences of the schemas.
// Capabilities are omitted: in every revision they are "not a closed set".
var (
	implementation = shape{
		"title": {since: protocol.Rev20250618}, "description": {since: protocol.Rev20251125},
		"websiteUrl": {since: protocol.Rev20251125},
		"icons":      {since: protocol.Rev20251125},
	}
	annotations = shape{"lastModified": {since: protocol.Rev20250618}}
	contents    = shape{"_meta": {since: protocol.Rev20250618}}
	content     = shape{
		"_meta": {since: protocol.Rev20250618}, "annotations": {of: annotations}, "resource": {of: contents},
		"icons": {since: protocol.Rev20251125}, // of links
	}
	sampled = shape{"_meta": {since: protocol.Rev20251125}, "content": {of: content}}
	tool    = shape{
		"annotations": {since: protocol.Rev20250326}, "_meta": {since: protocol.Rev20250618},
		"title":        {since: protocol.Rev20250618},
		"outputSchema": {since: protocol.Rev20250618, early: describesObject}, "icons": {since: protocol.Rev20251125},
	}
	prompt = shape{
		"_meta": {since: protocol.Rev20250618}, "title": {since: protocol.Rev20250618},
		"icons":     {since: protocol.Rev20251125},
		"arguments": {of: shape{"title": {since: protocol.Rev20250618}}},
	}
	resource = shape{
		"_meta": {since: protocol.Rev20250618}, "title": {since: protocol.Rev20250618},
		"icons":       {since: protocol.Rev20251125},
		"annotations": {of: annotations},
	}

	results = map[string]shape{
		"initialize":               {"serverInfo": {of: implementation}},
		"tools/list":               cacheable("tools", tool),
		"prompts/list":             cacheable("prompts", prompt),
		"resources/list":           cacheable("resources", resource),
		"resources/templates/list": cacheable("resourceTemplates", resource),
		"resources/read":           cacheable("contents", contents),
		"tools/call":               {"content": {of: content}, "structuredContent": {since: protocol.Rev20250618}},
		"tasks/result":             {"content": {of: content}, "structuredContent": {since: protocol.Rev20250618}},
		"prompts/get":              {"messages": {of: shape{"content": {of: content}}}},
	}
	params = map[string]shape{
		"notifications/progress": {"message": {since: protocol.Rev20250326}},
		"sampling/createMessage": {
			"messages": {of: sampled}, "tools": {since: protocol.Rev20251125},
			"toolChoice": {since: protocol.Rev20251125},
		},
		"elicitation/create": {"mode": {since: protocol.Rev20251125}}, // the only earlier mode is the default
	}
)

func cacheable(name string, of shape) shape {
	return shape{"ttlMs": {since: protocol.Rev20260728}, "cacheScope": {since: protocol.Rev20260728}, name: {of: of}}
}

// describesObject reports whether a schema is valid up to 2025-11-25, where structured content must
// be an object.
func describesObject(schema json.RawMessage) bool {
	var s struct{ Type string }
	return json.Unmarshal(schema, &s) == nil && s.Type == "object"
}

// newer reports whether s contains additions that version lacks.
func (s shape) newer(version string) bool {
	for _, m := range s {
		if version < m.since || m.early != nil && !protocol.IsStateless(version) || m.of.newer(version) {
			return true
		}
	}
	return false
}

// without returns JSON without the members that version lacks. Other values are not parsed.
func (s shape) without(raw json.RawMessage, version string) (json.RawMessage, error) {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if !s.newer(version) || len(raw) == 0 {
		return raw, nil
	}
	switch raw[0] {
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
		for i := range list {
			var err error
			if list[i], err = s.without(list[i], version); err != nil {
				return nil, err
			}
		}
		return json.Marshal(list)
	case '{':
		return s.withoutMembers(raw, version)
	}
	return raw, nil
}

func (s shape) withoutMembers(raw json.RawMessage, version string) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	for name, m := range s {
		value, ok := object[name]
		switch {
		case !ok:
		case version < m.since, m.early != nil && !protocol.IsStateless(version) && !m.early(value):
			delete(object, name)
		default:
			own, err := m.of.without(value, version)
			if err != nil {
				return nil, err
			}
			object[name] = own
		}
	}
	return json.Marshal(object)
}

func (s shape) marshal(v any, version string) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if raw, err = s.without(raw, version); err != nil {
		return nil, fmt.Errorf("gosdk: writing it as of %s: %w", version, err)
	}
	return raw, nil
}

// olderResult is a result without additions of later revisions.
type olderResult struct {
	mcp.Result
	shape   shape
	version string
}

// MarshalJSON implements json.Marshaler.
func (r olderResult) MarshalJSON() ([]byte, error) { return r.shape.marshal(r.Result, r.version) }

// asOf returns a result as the revision of x defines it (RS-73). Results without newer members keep
// their type.
func (x *exchange) asOf(result mcp.Result) mcp.Result {
	version := x.version
	if opened, ok := result.(*mcp.InitializeResult); ok {
		version = opened.ProtocolVersion
	}
	if s := results[x.method]; result != nil && s.newer(version) {
		return olderResult{result, s, version}
	}
	return result
}

// olderParams are params without additions of later revisions.
type olderParams struct {
	mcp.Params
	shape   shape
	version string
}

// MarshalJSON implements json.Marshaler.
func (p olderParams) MarshalJSON() ([]byte, error) { return p.shape.marshal(p.Params, p.version) }

// asOf returns a request or notification of the server as the session's revision defines it.
func (a *Adapter) asOf(method string, req mcp.Request) mcp.Request {
	s, ok := req.GetSession().(*mcp.ServerSession)
	version := a.version(req)
	if own := params[method]; ok && own.newer(version) && req.GetParams() != nil {
		older := olderParams{req.GetParams(), own, version}
		return &mcp.ServerRequest[mcp.Params]{Session: s, Params: older, Extra: req.GetExtra()}
	}
	return req
}
