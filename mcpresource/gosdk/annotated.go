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

// remark warns of a tool that tells clients to copy a secret into a header, where proxies log it
// (MCP 2026-07-28, "Tools", x-mcp-header, RS-157). It goes by the name of the parameter, or by what
// its schema says of it: format password, writeOnly.
func (x *exchange) remark(ctx context.Context, result mcp.Result) {
	list, ok := result.(*mcp.ListToolsResult)
	if !ok {
		return
	}
	for _, tool := range list.Tools {
		if !x.remarked.first(tool.Name) {
			continue
		}
		for _, name := range exposed(tool.InputSchema) {
			x.o.Logger.WarnContext(ctx, "a parameter that looks like a secret is copied into a header by clients: "+
				"remove x-mcp-header from it", "tool", tool.Name, "parameter", name)
		}
	}
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
