// Package lists shows to each caller those tools, prompts, resources and tasks of an MCP server that the
// caller may use, while the answer of the server is on its way, and tells which tasks have begun.
//
// Lists are found by their place, result.tools and the like, in a message, in each message of a
// batch, and in the data of each event of a stream. Only one entry of a list is held at a time; all
// else goes on as it comes, byte for byte, but for two things. The member cacheScope becomes private: what one
// caller is shown is not for another (MCP 2026-07-28, Caching). The frame of a stream is written again.
//
// A server that wants to be misread is not: keys are compared without case and with their escapes
// resolved, as some clients read them. An entry whose name cannot be told for certain is not shown:
// one without a name or with two, one that is larger than a mebibyte. What begins as a message and
// is not JSON ends the answer; so does what some decoders take for JSON, as comments and names without quotes. In a
// stream each line ends with a line feed, and the only lines are those of fields that the standard has and empty
// comments: readers differ in where a line ends, so that one could find an event where others see a comment.
package lists

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Kind is what a list has.
type Kind uint8

// The kinds of lists.
const (
	None Kind = iota
	Tools
	Prompts
	Resources
	Templates
	Tasks
	// Begun is no list: its entries are the tasks that answers to calls say have begun. See [Body] for what
	// becomes of an answer with one that is not shown.
	Begun
)

// last is the last kind that is a list.
const last = Tasks

// kinds has the members of results that are lists, the member that is the name of an entry, the
// method that lists them, and the one that uses an entry.
var kinds = [...]struct{ member, name, list, use string }{
	Tools:     {"tools", "name", "tools/list", "tools/call"},
	Prompts:   {"prompts", "name", "prompts/list", "prompts/get"},
	Resources: {"resources", "uri", "resources/list", "resources/read"},
	Templates: {"resourceTemplates", "uriTemplate", "resources/templates/list", "resources/read"},
	Tasks:     {"tasks", "taskId", "tasks/list", "tasks/get"},
	Begun:     {use: "tasks/get"},
}

// Of returns the kind of list that a method answers with, None for any other method.
func Of(method string) Kind {
	for k := Tools; k <= last; k++ {
		if kinds[k].list == method {
			return k
		}
	}
	return None
}

// Use is the method by which an entry of a list is used.
func (k Kind) Use() string { return kinds[k].use }

// View reports whether an entry is shown. Entry is its JSON, which is not to be kept or changed;
// name is "" for one whose name cannot be told, which is not shown whatever the view says.
type View func(k Kind, name string, entry []byte) bool

// Asked reports whether a body, which a Guard has let through, asks for a list. Other bodies are
// not decoded.
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
