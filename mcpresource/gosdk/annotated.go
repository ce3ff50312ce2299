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

// remarked are the tools whose annotations have been looked at, by name.
type remarked struct {
	mu    sync.Mutex // guards tools
	tools map[string]remark
}

// remark is what was found out about a tool.
type remark struct {
	tool  *mcp.Tool
	shown *mcp.Tool // in lists; the tool itself if nothing is wrong with it
}

func newRemarked() *remarked { return &remarked{tools: map[string]remark{}} }

// of returns a tool as lists show it, nil for one that has not been looked at.
func (r *remarked) of(tool *mcp.Tool) *mcp.Tool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.tools[tool.Name]; known.tool == tool {
		return known.shown
	}
	return nil
}

// keep reports whether the tool is the first of its name. It bounds the names, for servers that replace tools.
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

// secretive are the names of parameters that nothing should copy into a header.
var secretive = regexp.MustCompile(
	`(?i)pass(word|wd|phrase|code)|secret|credential|(^|[_-])(token|pin|ssn|iban)$|(api|private|access)[_-]?key|Token$`,
)

// remark leaves out of a list of tools those annotations that no client can follow, for which clients would
// leave out the tool (MCP 2026-07-28, "Tools", x-mcp-header, RS-156), and warns of them; the SDK refuses the
// other bad ones when the tool is added. It also warns of a tool that tells clients to copy a secret into a
// header, where proxies log it (RS-157): by the name of the parameter, or by what its schema says of it,
// which is format password or writeOnly.
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

// followed is a tool without the annotations that no client can follow.
func followed(tool *mcp.Tool) *mcp.Tool {
	b, err := json.Marshal(tool.InputSchema)
	if err != nil {
		return tool
	}
	var root any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // as they are written
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

// strays takes out of a value of a schema, to which properties alone lead or not, the annotations that they
// do not lead to, as below items. It reports whether there were any.
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
			case "default", "const", "enum", "examples": // data, and no schema
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

// annotated is what has to be known of a schema for its annotations.
type annotated struct {
	Header     string               `json:"x-mcp-header"`
	Format     string               `json:"format"`
	WriteOnly  bool                 `json:"writeOnly"`
	Properties map[string]annotated `json:"properties"`
}

// exposed names the parameters with an annotation that look like secrets.
func exposed(schema any) (names []string) {
	b, err := json.Marshal(schema)
	var root annotated
	if err != nil || json.Unmarshal(b, &root) != nil {
		return nil // what else is wrong with it, a call says
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
