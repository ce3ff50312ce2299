package gosdk

import (
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
	tools map[string]bool
}

func newRemarked() *remarked { return &remarked{tools: map[string]bool{}} }

// first bounds the names, for servers that replace tools.
func (r *remarked) first(tool string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tools[tool] || len(r.tools) >= maxSchemas {
		return false
	}
	r.tools[tool] = true
	return true
}

// secretive are the names of parameters that nothing should copy into a header.
var secretive = regexp.MustCompile(
	`(?i)pass(word|wd|phrase|code)|secret|credential|(^|[_-])(token|pin|ssn|iban)$|(api|private|access)[_-]?key|Token$`,
)

// remark warns of a tool whose annotations no client can follow, and of one that tells clients to copy
// a secret into a header, where proxies log it (MCP 2026-07-28, "Tools", x-mcp-header, RS-157). It goes by
// the name of the parameter, or by what its schema says of it: format password, writeOnly.
func (x *exchange) remark(ctx context.Context, result mcp.Result) {
	list, ok := result.(*mcp.ListToolsResult)
	if !ok {
		return
	}
	for _, tool := range list.Tools {
		if !x.remarked.first(tool.Name) {
			continue
		}
		if misplaced(tool.InputSchema) {
			x.o.Logger.WarnContext(ctx, "an x-mcp-header stands where clients cannot follow it, and they leave out the "+
				"tool: it belongs to a parameter, or to a property of one", "tool", tool.Name)
		}
		for _, name := range exposed(tool.InputSchema) {
			x.o.Logger.WarnContext(ctx, "a parameter that looks like a secret is copied into a header by clients: "+
				"remove x-mcp-header from it", "tool", tool.Name, "parameter", name)
		}
	}
}

// misplaced reports whether a schema has an annotation that is not reached by properties alone, as
// below items (RS-156). The SDK refuses the other bad ones when the tool is added.
func misplaced(schema any) bool {
	b, err := json.Marshal(schema)
	var root any
	return err == nil && json.Unmarshal(b, &root) == nil && strays(root, true)
}

// strays looks below a value of a schema, to which properties alone lead or not.
func strays(v any, reached bool) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(element any) bool { return strays(element, false) })
	case map[string]any:
		if _, ok := v["x-mcp-header"].(string); ok && !reached {
			return true
		}
		for name, member := range v {
			properties, ok := member.(map[string]any)
			if !ok || name != "properties" || !reached {
				if strays(member, false) {
					return true
				}
				continue
			}
			for _, p := range properties {
				if strays(p, true) {
					return true
				}
			}
		}
	}
	return false
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
