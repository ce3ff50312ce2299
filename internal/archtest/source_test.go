package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

const maxLines = 400

// shortFiles checks that a file can be read in one go. A file is named for one thing of the
// protocol.
func shortFiles(m module) (bad []string) {
	for _, f := range m.files {
		if !f.test() && !ast.IsGenerated(f.syntax) && f.lines > maxLines {
			bad = append(bad, fmt.Sprintf("%s has %d lines, the limit is %d", f.path, f.lines, maxLines))
		}
	}
	return bad
}

// namedPackages refuses collective names, because a function without a home belongs to the type
// that it serves.
func namedPackages(m module) (bad []string) {
	refused := []string{"util", "utils", "common", "helper", "helpers", "types", "models", "misc", "shared"}
	for _, p := range m.packages {
		last := p.path[strings.LastIndexByte(p.path, '/')+1:]
		if slices.Contains(refused, p.name) || slices.Contains(refused, last) {
			bad = append(bad, fmt.Sprintf("%s (package %s)", p.path, p.name))
		}
	}
	return bad
}

// noInit refuses init functions, because main does everything at start, in order, with errors.
func noInit(m module) (bad []string) {
	for _, f := range m.files {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				bad = append(bad, f.path+" has func init")
			}
		}
	}
	return bad
}

// oneStrictReader checks that only package strictjson reads JSON by tokens or refuses unknown members.
// A second reader would have another rule for repeated names.
func oneStrictReader(m module) (bad []string) {
	for _, f := range m.files {
		if f.test() || f.dir() == "internal/strictjson" {
			continue
		}
		local, decodes := importedAs(f.syntax, "encoding/json"), false
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "Decoder" || s.Sel.Name == "NewDecoder") {
				x, ok := s.X.(*ast.Ident)
				decodes = decodes || ok && slices.Contains(local, x.Name)
			}
			return true
		})
		for _, s := range selections(f.syntax) {
			if decodes && slices.Contains([]string{"Token", "More", "DisallowUnknownFields"}, s) {
				bad = append(bad, fmt.Sprintf("%s calls %s of a json.Decoder: use internal/strictjson", f.path, s))
			}
		}
	}
	return bad
}

// keySets lists the packages that read key sets: of other servers, and of this one.
var keySets = []string{"internal/jwks", "internal/keys"}

// oneKeySet checks that only package jwks parses and caches the key sets of other servers. A second
// parser would have other bounds, and a second cache other pauses.
func oneKeySet(m module) (bad []string) {
	for _, f := range m.files {
		if f.test() || slices.Contains(keySets, f.dir()) || anyWithin(f.dir(), []string{testkit, "test"}) {
			continue
		}
		local := importedAs(f.syntax, "github.com/go-jose/go-jose/v4")
		named := func(n ast.Expr, name string) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || s.Sel.Name != name {
				return false
			}
			x, ok := s.X.(*ast.Ident)
			return ok && slices.Contains(local, x.Name)
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if named(n, "JSONWebKeySet") {
					bad = append(bad, f.path+" uses jose.JSONWebKeySet: use jwks.Parser")
				}
			case *ast.Field:
				list, ok := n.Type.(*ast.ArrayType)
				if ok && n.Tag != nil && strings.Contains(n.Tag.Value, `json:"keys"`) && rawMessage(list.Elt) {
					bad = append(bad, f.path+" parses a key set: use jwks.Parser")
				}
			case *ast.StructType:
				for _, field := range n.Fields.List {
					list, isList := field.Type.(*ast.ArrayType)
					index, isMap := field.Type.(*ast.MapType)
					if isList && named(list.Elt, "JSONWebKey") || isMap && named(index.Value, "JSONWebKey") {
						bad = append(bad, f.path+" keeps a list of keys: use jwks.Set")
					}
				}
			}
			return true
		})
	}
	return bad
}

func rawMessage(n ast.Expr) bool {
	s, ok := n.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "RawMessage"
}

// selections returns the names after all dots in a file.
func selections(f *ast.File) (names []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			names = append(names, s.Sel.Name)
		}
		return true
	})
	return names
}

// unitOfDurations refuses slog.Duration, because its JSON is a number of nanoseconds without a
// unit.
func unitOfDurations(m module) (bad []string) {
	for _, f := range m.files {
		local := importedAs(f.syntax, "log/slog")
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || f.test() {
				return !f.test()
			}
			if x, ok := s.X.(*ast.Ident); ok && slices.Contains(local, x.Name) && s.Sel.Name == "Duration" {
				bad = append(bad, f.path+" logs a slog.Duration: use audit.Milliseconds")
			}
			return true
		})
	}
	return bad
}

// noTestServer refuses net/http/httptest outside tests. A program calls its own handlers directly.
func noTestServer(m module) (bad []string) {
	for _, f := range m.files {
		if !f.test() && !anyWithin(f.dir(), append([]string{testkit, "test", "bench"}, forTests...)) &&
			len(importedAs(f.syntax, "net/http/httptest")) > 0 {
			bad = append(bad, f.path+" imports net/http/httptest")
		}
	}
	return bad
}

// noReplace checks go.mod, because a replace directive breaks "go install ...@version".
func noReplace(m module) (bad []string) {
	for line := range strings.Lines(m.gomod) {
		code, _, _ := strings.Cut(line, "//")
		if fields := strings.Fields(code); len(fields) > 0 && (fields[0] == "replace" || fields[0] == "exclude") {
			bad = append(bad, "go.mod: "+strings.TrimSpace(line))
		}
	}
	return bad
}

// hiddenFosite checks that authserver exports no types of fosite, which is an implementation
// detail. They would tie every embedding program to it.
func hiddenFosite(m module) (bad []string) {
	for _, f := range m.files {
		if f.test() || !within(f.dir(), "authserver") {
			continue
		}
		bad = append(bad, exposes(f, importedAs(f.syntax, "github.com/ory/fosite"), nil)...)
	}
	return bad
}

// The packages that internal/assembly builds a server of, and their files that are for users. Other
// exports of these packages are for that assembly.
var (
	assembled = []string{"authserver", "dcr", "thirdparty"}
	promised  = []string{"authserver/embed.go", "authserver/policies.go"}
)

// hiddenInternal checks that users of a public package can name everything that it exports. An
// alias with the same name gives an internal type its public name.
func hiddenInternal(m module) (bad []string) {
	for _, f := range m.files {
		if f.test() || isInternal(f.dir()) || anyWithin(f.dir(), programs) ||
			slices.Contains(assembled, f.dir()) && !slices.Contains(promised, f.path) {
			continue
		}
		var local []string
		for _, p := range ofModule(f.syntax) {
			if isInternal(p) {
				local = append(local, importedAs(f.syntax, modulePath+"/"+p)...)
			}
		}
		bad = append(bad, exposes(f, local, reexported)...)
	}
	return bad
}

func isInternal(path string) bool { return slices.Contains(strings.Split(path, "/"), "internal") }

// ofModule returns the packages of this module that a file imports.
func ofModule(f *ast.File) (out []string) {
	for _, i := range f.Imports {
		if path, err := strconv.Unquote(i.Path.Value); err == nil && within(path, modulePath) {
			out = append(out, inside(path))
		}
	}
	return out
}

// exposes returns the exports of a file that refer to packages imported under the names local.
func exposes(f file, local []string, allowed func(name string, expr ast.Node) bool) (bad []string) {
	for name, expr := range exportedSurface(f.syntax) {
		if allowed != nil && allowed(name, expr) {
			continue
		}
		ast.Inspect(expr, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && slices.Contains(local, x.Name) {
				bad = append(bad, fmt.Sprintf("%s: %s mentions %s.%s", f.path, name, x.Name, s.Sel.Name))
			}
			return true
		})
	}
	return bad
}

// reexported reports whether a declaration is an alias, or a variable with the value, of the same
// name in another package.
func reexported(name string, expr ast.Node) bool {
	s, ok := expr.(*ast.SelectorExpr)
	return ok && strings.TrimSuffix(name, " =") == s.Sel.Name
}

// behindHTTP checks that packages that decide about a request do not use HTTP. The edge parses the
// request and writes the result.
func behindHTTP(m module) (bad []string) {
	behind := []string{
		"authserver/internal/account", "authserver/internal/binding", "authserver/internal/catalogue",
		"authserver/internal/clients",
		"authserver/internal/connect",
		"authserver/internal/entry", "authserver/internal/flow", "authserver/internal/form",
		"authserver/internal/grant",
		"authserver/internal/refusal",
	}
	for _, f := range m.files {
		if !f.test() && slices.Contains(behind, f.dir()) && len(importedAs(f.syntax, "net/http")) > 0 {
			bad = append(bad, f.path+" imports net/http")
		}
	}
	return bad
}

// requests lists the identifiers of an HTTP client.
var requests = []string{
	"Client", "DefaultClient", "DefaultTransport", "Get", "Head", "NewRequest", "NewRequestWithContext", "Post",
	"PostForm", "RoundTripper", "Transport",
}

// spokenThroughProvider checks that sessions call providers through package provider, whose
// transport limits destinations and responses.
func spokenThroughProvider(m module) (bad []string) {
	for _, f := range m.files {
		if f.test() || f.dir() != "thirdparty" {
			continue
		}
		local := importedAs(f.syntax, "net/http")
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && slices.Contains(local, x.Name) &&
				slices.Contains(requests, s.Sel.Name) {
				bad = append(bad, fmt.Sprintf("%s: %s.%s", f.path, x.Name, s.Sel.Name))
			}
			return true
		})
	}
	return bad
}

// clockless reports whether a path must use an injected clock. The other trees assemble or test
// such code.
func clockless(path string) bool {
	return !anyWithin(path, []string{
		"cmd", "test", "bench", "examples", "internal/testkit", "internal/demoserver", "internal/storage/storagetest",
	})
}

// ownClocks lists the files that read the time themselves, with the reason.
var ownClocks = map[string]string{
	"internal/audit/deferred.go":                "an event happens when it is recorded",
	"authserver/connections.go":                 "deadlines of connections are the kernel's time",
	"authserver/housekeeping.go":                "the pace of the sweep is by how long the database took",
	"authserver/observe.go":                     "deadlines of connections",
	"internal/secrets/secrets.go":               "ids sort by time, roughly",
	"internal/assembly/server.go":               "the clock that others are given",
	"mcpresource/deadline.go":                   "deadlines of connections",
	"mcpresource/mcptest/issuer.go":             "the clock that the guards of tests are given",
	"mcpresource/mcptest/handler.go":            "a caller who has just signed in",
	"mcpresource/judging.go":                    "tokens are judged again at the pace of a timer",
	"mcpresource/gosdk/calls.go":                "how long a call took",
	"mcpresource/gosdk/middleware.go":           "how long a call took",
	"mcpresource/gosdk/sse.go":                  "deadlines of connections",
	"mcpresource/gosdk/readers.go":              "deadlines of connections, and a timer",
	"internal/gateway/stdio/stream.go":          "a reader is replaced at the pace of a timer",
	"internal/storage/postgres/cancel.go":       "deadlines of connections",
	"internal/storage/postgres/pool.go":         "how long a connection has rested",
	"thirdparty/check.go":                       "how long an answer was waited for",
	"thirdparty/internal/provider/oauth2.go":    "x/oauth2 counts from its own now",
	"thirdparty/internal/provider/transport.go": "Retry-After counts from the answer that has just come",
}

// injectedClocks checks that a clock is a field with time.Now as default, so that tests can set it
// and all replicas use the clock of the store.
func injectedClocks(m module) (bad []string) {
	for _, f := range m.files {
		if f.test() || !clockless(f.dir()) || ownClocks[f.path] != "" {
			continue
		}
		local := importedAs(f.syntax, "time")
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			s, ok := c.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Now", "Since", "Until"}, s.Sel.Name) {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && slices.Contains(local, x.Name) {
				bad = append(bad, fmt.Sprintf("%s calls time.%s", f.path, s.Sel.Name))
			}
			return true
		})
	}
	return bad
}

// importedAs returns a file's local names for imports of a tree.
func importedAs(f *ast.File, tree string) (names []string) {
	for _, i := range f.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil || !within(path, tree) {
			continue
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		names = append(names, name)
	}
	return names
}

// exportedSurface returns the types in everything that users of the file's package can see. These
// are the signatures of exported functions and methods, exported types with their exported fields,
// and exported variables and constants by type, or else by value.
func exportedSurface(f *ast.File) map[string]ast.Node {
	out := map[string]ast.Node{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
				out[receiver(d)+"."+d.Name.Name] = d.Type
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				surfaceOfSpec(s, out)
			}
		}
	}
	return out
}

func surfaceOfSpec(s ast.Spec, out map[string]ast.Node) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for i, n := range s.Names {
			if n.IsExported() && s.Type != nil {
				out[n.Name] = s.Type
			}
			if n.IsExported() && s.Type == nil && i < len(s.Values) {
				out[n.Name+" ="] = s.Values[i]
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return
		}
		st, ok := s.Type.(*ast.StructType)
		if !ok {
			out[s.Name.Name] = s.Type
			return
		}
		for _, field := range st.Fields.List {
			if len(field.Names) == 0 || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
				out[s.Name.Name+"."+fmt.Sprint(field.Names)] = field.Type
			}
		}
	}
}

// receiver returns the name of a method's type, or "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	t := d.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	if g, ok := t.(*ast.IndexExpr); ok {
		t = g.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// carriers lists the files of the server that put a value into a context: the record of a request, and
// values that are not about the request.
var carriers = []string{
	"internal/request/record.go", "internal/audit/pending.go", // events to wait for, with audit.required
	"authserver/connections.go", // the connection of the request
}

// carried lists the packages that know a request to the authorization server.
var carried = []string{"authserver", "dcr", "internal/audit", "internal/attempt", "internal/request"}

// oneRecord checks that the server carries what it knows about a request in one record. A second one
// would have to be kept in step with it.
func oneRecord(m module) (bad []string) {
	for _, f := range m.files {
		if f.test() || slices.Contains(carriers, f.path) || !anyWithin(f.dir(), carried) {
			continue
		}
		if slices.Contains(selections(f.syntax), "WithValue") {
			bad = append(bad, f.path+" puts a value into a context: note it in the request.Record")
		}
	}
	return bad
}
