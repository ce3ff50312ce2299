package archtest

import (
	"fmt"
	"go/ast"
	"slices"
)

// edgeOrStore checks that a function that writes a response has no store, neither as a parameter
// nor in a field that it uses. All decisions that need the store are then made before the first
// byte is written.
func edgeOrStore(m module) (bad []string) {
	roles := interfacesIn(m, "internal/storage")
	fields := storeFields(m, roles)
	for _, f := range m.files {
		if f.test() || anyWithin(f.dir(), assembly) {
			continue
		}
		local, names := importedAs(f.syntax, modulePath+"/internal/storage"), fields[f.dir()]
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			params, body := function(n)
			if body == nil || !writesAnswers(f.syntax, params) {
				return true
			}
			for _, p := range params.List {
				if isStore(p.Type, local, roles) {
					bad = append(bad, f.path+": a function has a writer and a store as parameters")
				}
			}
			for _, name := range selected(body, names) {
				bad = append(bad, fmt.Sprintf("%s: a function with a writer uses the store in %s", f.path, name))
			}
			return true
		})
	}
	return bad
}

// function returns the parameters and the body of a function or of a function literal.
func function(n ast.Node) (*ast.FieldList, *ast.BlockStmt) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return n.Type.Params, n.Body
	case *ast.FuncLit:
		return n.Type.Params, n.Body
	}
	return nil, nil
}

func writesAnswers(f *ast.File, params *ast.FieldList) bool {
	local := importedAs(f, "net/http")
	return slices.ContainsFunc(params.List, func(p *ast.Field) bool {
		return isOf(p.Type, local, []string{"ResponseWriter"})
	})
}

// isStore reports whether a type is a role of the store, or a package's Store interface composed of
// roles.
func isStore(t ast.Expr, local, roles []string) bool {
	id, ok := t.(*ast.Ident)
	return ok && id.Name == "Store" || isOf(t, local, roles)
}

// isOf reports whether a type has one of the names of a package.
func isOf(t ast.Expr, local, names []string) bool {
	s, ok := t.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && slices.Contains(local, x.Name) && slices.Contains(names, s.Sel.Name)
}

// interfacesIn returns the names of the interfaces that a package declares.
func interfacesIn(m module, dir string) (names []string) {
	for _, f := range m.files {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			t, ok := n.(*ast.TypeSpec)
			if !ok || f.dir() != dir || f.test() {
				return true
			}
			if _, ok := t.Type.(*ast.InterfaceType); ok {
				names = append(names, t.Name.Name)
			}
			return false
		})
	}
	return names
}

// storeFields returns, for each package, the fields that hold a store.
func storeFields(m module, roles []string) map[string][]string {
	out := map[string][]string{}
	for _, f := range m.files {
		local := importedAs(f.syntax, modulePath+"/internal/storage")
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			s, ok := n.(*ast.StructType)
			if !ok || f.test() {
				return true
			}
			for _, field := range s.Fields.List {
				for _, name := range field.Names {
					if isStore(field.Type, local, roles) {
						out[f.dir()] = append(out[f.dir()], name.Name)
					}
				}
			}
			return true
		})
	}
	return out
}

// selected returns the fields, or the usual names of stores, that a body selects. It ignores calls,
// because an atomic value has a method Store.
func selected(body *ast.BlockStmt, fields []string) (out []string) {
	called := map[ast.Expr]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			called[c.Fun] = true
		}
		s, ok := n.(*ast.SelectorExpr)
		if !ok || called[s] {
			return true
		}
		if s.Sel.Name == "store" || s.Sel.Name == "Store" || slices.Contains(fields, s.Sel.Name) {
			out = append(out, s.Sel.Name)
		}
		return true
	})
	return out
}
