// Package lists filters the tools, prompts, resources and tasks that an MCP server lists, so that
// each caller sees only those that it may use. It works while the response is streaming, and
// reports which tasks have begun.
//
// The filter finds lists by their place, such as result.tools, in a message, in each message of a
// batch, and in the data of each event of a stream. It buffers only one list entry at a time and
// passes everything else unchanged, byte for byte, with two exceptions. The member cacheScope
// becomes private, because a filtered list is not valid for other callers (MCP 2026-07-28,
// Caching). The framing of streams is rewritten.
//
// A server cannot hide entries by ambiguity. Keys are compared without case and with escapes
// resolved, as some clients do. An entry with an uncertain name is hidden: an entry with no name or
// two names, or one larger than a mebibyte. Text that begins as a message and is not JSON ends the
// response. So do forms that only some decoders accept, such as comments and names without quotes.
// In a stream each line ends with a line feed, and has a standard field or an empty comment.
// Readers disagree about line ends, so one could find an event where others see a comment.
package lists

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Kind is the kind of entries in a list.
type Kind uint8

// These are the kinds of lists.
const (
	None Kind = iota
	Tools
	Prompts
	Resources
	Templates
	Tasks
	// Begun is not a list. Its entries are the tasks that responses to calls announce. See [Body]
	// for how a response with a hidden task is handled.
	Begun
)

// last is the last kind of list.
const last = Tasks

// kinds holds four names for each kind of list: the result's member, the member with an entry's
// name, the method that lists entries, and the method that uses one.
var kinds = [...]struct{ member, name, list, use string }{
	Tools:     {"tools", "name", "tools/list", "tools/call"},
	Prompts:   {"prompts", "name", "prompts/list", "prompts/get"},
	Resources: {"resources", "uri", "resources/list", "resources/read"},
	Templates: {"resourceTemplates", "uriTemplate", "resources/templates/list", "resources/read"},
	Tasks:     {"tasks", "taskId", "tasks/list", "tasks/get"},
	Begun:     {use: "tasks/get"},
}

// Of returns the kind of list that a method returns, or None.
func Of(method string) Kind {
	for k := Tools; k <= last; k++ {
		if kinds[k].list == method {
			return k
		}
	}
	return None
}

// Use returns the method that uses an entry of a list.
func (k Kind) Use() string { return kinds[k].use }

// View reports whether the caller may see an entry. Entry is the entry's JSON, which View must not
// keep or change. name is "" if it is uncertain; such an entry is always hidden.
type View func(k Kind, name string, entry []byte) bool

// Asked reports whether a body that a Guard has accepted requests a list. Bodies without a method
// of this kind are not decoded.
func Asked(body []byte) bool {
	if !bytes.Contains(body, []byte("list")) && !bytes.Contains(body, []byte(`\u`)) {
		return false
	}
	type call struct {
		Method string `json:"method"`
	}
	calls := make([]call, 1)
	var err error
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		err = json.Unmarshal(body, &calls)
	} else {
		err = json.Unmarshal(body, &calls[0])
	}
	return err != nil || slices.ContainsFunc(calls, func(c call) bool { return Of(c.Method) != None })
}
