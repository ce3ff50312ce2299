package gosdk

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// remarked stores the tools whose annotations were checked, by name.
type remarked struct {
	mu    sync.Mutex // guards tools
	tools map[string]remark
}

// remark is the result of the check of a tool.
type remark struct {
	tool  *mcp.Tool
	shown *mcp.Tool // for lists; equals tool if it is valid
}

func newRemarked() *remarked { return &remarked{tools: map[string]remark{}} }

// of returns a tool in the form for lists, or nil if it was not checked yet.
func (r *remarked) of(tool *mcp.Tool) *mcp.Tool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.tools[tool.Name]; known.tool == tool {
		return known.shown
	}
	return nil
}

// keep stores a check and reports whether the tool's name is new. It limits the number of names,
// because servers may replace tools.
func (r *remarked) keep(known remark) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, named := r.tools[known.tool.Name]
	first = !named && len(r.tools) < maxSchemas
	if named || first {
		r.tools[known.tool.Name] = known
	}
	return first
}

// secretive matches names of parameters that must not be copied into a header.
var secretive = regexp.MustCompile(
	`(?i)pass(word|wd|phrase|code)|secret|credential|(^|[_-])(token|pin|ssn|iban)$|(api|private|access)[_-]?key|Token$`,
)

// remark removes annotations that no client can follow from a list of tools, and logs them.
// Otherwise clients would ignore those tools (MCP 2026-07-28, "Tools", x-mcp-header, RS-156). Other
// invalid annotations are rejected by the SDK when the tool is added. remark also logs tools that
// make clients copy a secret into a header, where proxies may log it (RS-157). It recognizes
// secrets by the parameter's name, or by format password or writeOnly in its schema.
func (x *exchange) remark(ctx context.Context, result mcp.Result) {
	list, ok := result.(*mcp.ListToolsResult)
	if !ok {
		return
	}
	for i, tool := range list.Tools {
		shown := x.remarked.of(tool)
		if shown == nil {
			shown = followed(tool)
			if x.remarked.keep(remark{tool, shown}) {
				x.warn(ctx, tool, shown)
			}
		}
		if shown != tool {
			list.Tools[i] = shown
		}
	}
}

// followed returns a tool without the annotations that no client can follow.
func followed(tool *mcp.Tool) *mcp.Tool {
	b, err := json.Marshal(tool.InputSchema)
	if err != nil {
		return tool
	}
	var root any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // keeps numbers unchanged
	if d.Decode(&root) != nil || !strays(root, true) {
		return tool
	}
	own := *tool
	own.InputSchema = root
	return &own
}

func (x *exchange) warn(ctx context.Context, tool, shown *mcp.Tool) {
	if shown != tool {
		x.o.Logger.WarnContext(ctx, "an x-mcp-header stands where clients cannot follow it, and is not shown to them: "+
			"it belongs to a parameter, or to a property of one", "tool", tool.Name)
	}
	for _, name := range exposed(tool.InputSchema) {
		x.o.Logger.WarnContext(ctx, "a parameter that looks like a secret is copied into a header by clients: "+
			"remove x-mcp-header from it", "tool", tool.Name, "parameter", name)
	}
}

// strays removes annotations that are not reachable through properties alone, for example below
// items. reached states whether v itself is. It reports whether it removed any.
func strays(v any, reached bool) (found bool) {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			found = strays(element, false) || found
		}
	case map[string]any:
		if _, ok := v["x-mcp-header"].(string); ok && !reached {
			delete(v, "x-mcp-header")
			found = true
		}
		for name, member := range v {
			named, _ := member.(map[string]any)
			switch name {
			case "default", "const", "enum", "examples": // data, not schemas
			case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
				for _, schema := range named {
					found = strays(schema, reached && name == "properties") || found
				}
			default:
				found = strays(member, false) || found
			}
		}
	}
	return found
}

// annotated is the part of a schema that is needed to check annotations.
type annotated struct {
	Header     string               `json:"x-mcp-header"`
	Format     string               `json:"format"`
	WriteOnly  bool                 `json:"writeOnly"`
	Properties map[string]annotated `json:"properties"`
}

// exposed returns the names of annotated parameters that look like secrets.
func exposed(schema any) (names []string) {
	b, err := json.Marshal(schema)
	var root annotated
	if err != nil || json.Unmarshal(b, &root) != nil {
		return nil // a call reports other errors of the schema
	}
	root.walk(&names)
	slices.Sort(names)
	return names
}

func (a annotated) walk(names *[]string) {
	for name, p := range a.Properties {
		if p.Header != "" && (p.WriteOnly || p.Format == "password" || secretive.MatchString(name)) {
			*names = append(*names, name)
		}
		p.walk(names)
	}
}
