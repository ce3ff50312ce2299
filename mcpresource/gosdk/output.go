package gosdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// clean sanitizes a result for display in terminals, for models, and for programs that follow links
// (MCP, Tools, "Security Considerations": servers MUST sanitize tool outputs). Resources are data
// and are not changed.
func (x *exchange) clean(result mcp.Result) (mcp.Result, error) {
	switch r := result.(type) {
	case *mcp.CallToolResult:
		return x.cleanTool(r), nil
	case *mcp.GetPromptResult:
		return x.cleanPrompt(r)
	}
	return result, nil
}

func (x *exchange) cleanTool(r *mcp.CallToolResult) mcp.Result {
	out := *r // a handler may return the same result again
	out.Content = slices.Clone(r.Content)
	for i, c := range out.Content {
		out.Content[i] = x.cleanContent(c)
	}
	size := 0
	if !x.o.RawOutput {
		out.StructuredContent, size = cleanStructured(r.StructuredContent)
	}
	if !protocol.IsStateless(x.version) && !isObject(out.StructuredContent) {
		out.StructuredContent = nil // RS-73: other values exist only since 2026-07-28
	}
	for _, c := range out.Content {
		size += contentSize(c)
	}
	if x.tooLarge(size) {
		large := &mcp.CallToolResult{}
		large.SetError(
			fmt.Errorf("the result has %d bytes, more than the %d that this server sends: ask for less", size,
				x.o.MaxResult),
		)
		return large
	}
	return &out
}

// cleanPrompt cleans the result of a prompt (RS-193). It returns an error on failure, because the
// result of a prompt cannot express one.
func (x *exchange) cleanPrompt(r *mcp.GetPromptResult) (mcp.Result, error) {
	out := *r
	if !x.o.RawOutput {
		out.Description = plainText(r.Description)
	}
	out.Messages = slices.Clone(r.Messages)
	size := len(out.Description)
	for i, m := range out.Messages {
		if m != nil {
			own := *m
			own.Content = x.cleanContent(m.Content)
			out.Messages[i] = &own
			size += contentSize(own.Content)
		}
	}
	if x.tooLarge(size) {
		return nil, &jsonrpc.Error{
			Code: jsonrpc.CodeInternalError,
			Message: fmt.Sprintf("The prompt has %d bytes, more than the %d that this server sends.", size,
				x.o.MaxResult),
		}
	}
	return &out, nil
}

func (x *exchange) tooLarge(size int) bool {
	if x.o.RawOutput || x.o.MaxResult < 0 || size <= x.o.MaxResult {
		return false
	}
	x.outcome = mcpresource.OutcomeTooLarge
	return true
}

// cleanContent returns content cleaned, as a copy if it changed.
func (x *exchange) cleanContent(c mcp.Content) mcp.Content {
	c = older(c, x.version)
	if x.o.RawOutput {
		return c
	}
	switch v := c.(type) {
	case *mcp.TextContent:
		if text := plainText(v.Text); text != v.Text {
			out := *v
			out.Text = text
			return &out
		}
	case *mcp.ResourceLink:
		return x.cleanLink(v)
	case *mcp.EmbeddedResource:
		if v.Resource != nil && !x.permitted(v.Resource.URI) {
			return withheld(v.Resource.URI)
		}
	}
	return c
}

func (x *exchange) cleanLink(v *mcp.ResourceLink) mcp.Content {
	if !x.permitted(v.URI) {
		return withheld(v.URI)
	}
	out := *v
	out.Name, out.Title, out.Description = plainText(v.Name), plainText(v.Title), plainText(v.Description)
	return &out
}

// dangerous lists schemes of links that execute something or hide their content.
var dangerous = []string{"javascript", "vbscript", "data"}

func (x *exchange) permitted(uri string) bool {
	scheme, ok := schemeOf(uri)
	if x.o.URISchemes != nil {
		return ok && slices.Contains(x.o.URISchemes, scheme)
	}
	return !slices.Contains(dangerous, scheme)
}

// schemeOf reads a scheme like the most lenient programs, which skip white space and control
// characters.
func schemeOf(uri string) (string, bool) {
	uri = strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f {
			return -1
		}
		return r
	}, uri)
	if u, err := url.Parse(uri); err == nil {
		return u.Scheme, u.Scheme != ""
	}
	scheme, _, ok := strings.Cut(uri, ":")
	return strings.ToLower(scheme), ok
}

func withheld(uri string) mcp.Content {
	scheme, _ := schemeOf(uri)
	return &mcp.TextContent{
		Text: fmt.Sprintf("[a link was left out: the scheme %q is not permitted]", plainText(scheme)),
	}
}

// older replaces content that a revision lacks by text: clients would reject the whole result.
func older(c mcp.Content, version string) mcp.Content {
	switch v := c.(type) {
	case *mcp.ResourceLink:
		if version < protocol.Rev20250618 {
			return &mcp.TextContent{Text: strings.TrimSpace(v.Name + " " + v.URI), Annotations: v.Annotations}
		}
	case *mcp.AudioContent:
		if version < protocol.Rev20250326 {
			return &mcp.TextContent{
				Text: fmt.Sprintf("[audio, %s, %d bytes]", v.MIMEType, len(v.Data)), Annotations: v.Annotations,
			}
		}
	}
	return c
}

func contentSize(c mcp.Content) int {
	switch v := c.(type) {
	case *mcp.TextContent:
		return len(v.Text)
	case *mcp.ImageContent:
		return len(v.Data)
	case *mcp.AudioContent:
		return len(v.Data)
	case *mcp.EmbeddedResource:
		if v.Resource != nil {
			return len(v.Resource.URI) + len(v.Resource.Text) + len(v.Resource.Blob)
		}
	case *mcp.ResourceLink:
		return len(v.URI) + len(v.Name) + len(v.Title) + len(v.Description)
	}
	return 0
}

// escapes matches sequences that move the cursor, rename the window or write to the clipboard of a
// terminal (ECMA-48): CSI, strings such as OSC, and two-character sequences.
var escapes = regexp.MustCompile("(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]" +
	"|(?:\x1b[\\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\x07\x1b\u009c]*(?:\x07|\x1b\\\\|\u009c)?" +
	"|\x1b[ -/]*[0-~]")

// plainText removes escape sequences and control characters other than line breaks and tabs.
func plainText(s string) string {
	if strings.IndexFunc(s, isControl) < 0 {
		return s
	}
	s = strings.ReplaceAll(escapes.ReplaceAllString(s, ""), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return -1
		}
		return r
	}, s)
}

// isControl includes the carriage return: alone, it hides the text before it.
func isControl(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f
}

// cleanStructured cleans the strings and names of structured content, and returns its size. For
// typed tools the SDK has encoded it already.
func cleanStructured(v any) (any, int) {
	if v == nil {
		return nil, 0
	}
	raw, ok := v.(json.RawMessage)
	if !ok {
		b, err := json.Marshal(v)
		if err != nil {
			return v, 0 // the SDK will report it
		}
		raw = b
	}
	if !suspicious(raw) {
		return raw, len(raw)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var tree any
	if d.Decode(&tree) != nil {
		return raw, len(raw)
	}
	b, err := json.Marshal(cleanTree(tree))
	if err != nil {
		return raw, len(raw)
	}
	return json.RawMessage(b), len(b)
}

func isObject(structured any) bool {
	raw, ok := structured.(json.RawMessage)
	if !ok {
		raw, _ = json.Marshal(structured) // the SDK will report errors
	}
	return bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{"))
}

// suspicious reports whether JSON may contain a control character. In strings, those below U+0020
// are always escaped.
func suspicious(raw []byte) bool {
	return bytes.Contains(raw, []byte(`\u00`)) || bytes.Contains(raw, []byte(`\b`)) ||
		bytes.Contains(raw, []byte(`\f`)) ||
		bytes.Contains(raw, []byte(`\r`)) ||
		bytes.ContainsFunc(raw, func(r rune) bool { return r >= 0x7f && r <= 0x9f })
}

func cleanTree(v any) any {
	switch v := v.(type) {
	case string:
		return plainText(v)
	case []any:
		for i := range v {
			v[i] = cleanTree(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, member := range v {
			out[plainText(k)] = cleanTree(member)
		}
		return out
	}
	return v
}
