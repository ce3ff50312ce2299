package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// change is the replacement of one part of a file.
type change struct {
	file     string
	line     int
	within   string // enclosing function, type, variable or constant
	what     string // the kind of change
	from, to int    // byte offsets in the file
	old, new string
}

func (c change) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", c.file, c.line, c.within, c.text())
}

// key identifies a change by its content, because its line number changes.
func (c change) key() string { return c.file + ": " + c.within + ": " + c.text() }

func (c change) text() string {
	return fmt.Sprintf("%s: %s -> %s", c.what, flat(c.old), flat(c.new))
}

// flat returns code as one line of limited length.
func flat(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 100 {
		s = s[:100] + "..."
	}
	return s
}

// overlay writes the changed file into dir and returns the replacement for the go command's
// -overlay flag.
func (c change) overlay(dir string) (original, replacement string, err error) {
	text, err := os.ReadFile(c.file)
	if err != nil {
		return "", "", err
	}
	if original, err = filepath.Abs(c.file); err != nil {
		return "", "", err
	}
	replacement = filepath.Join(dir, "changed.go")
	changed := string(text[:c.from]) + c.new + string(text[c.to:])
	return original, replacement, os.WriteFile(replacement, []byte(changed), 0o600)
}

// finder collects the changes of one file.
type finder struct {
	name   string
	text   string
	files  *token.FileSet
	within string // current declaration
	out    []change
}

func changesOf(name string) ([]change, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f := &finder{name: name, text: string(text), files: token.NewFileSet()}
	parsed, err := parser.ParseFile(f.files, name, text, 0)
	if err != nil {
		return nil, err
	}
	for _, d := range parsed.Decls {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.IMPORT {
			continue
		}
		for name, n := range named(d) {
			f.within = name
			ast.Inspect(n, f.visit)
		}
	}
	return f.out, nil
}

// named returns the parts of a declaration with their names.
func named(d ast.Decl) iter.Seq2[string, ast.Node] {
	return func(yield func(string, ast.Node) bool) {
		switch d := d.(type) {
		case *ast.FuncDecl:
			yield(d.Name.Name, d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					if !yield(spec.Names[0].Name, spec) {
						return
					}
				case *ast.TypeSpec:
					if !yield(spec.Name.Name, spec) {
						return
					}
				}
			}
		}
	}
}

func (f *finder) add(what string, n ast.Node, replacement string) {
	from, to := f.files.Position(n.Pos()), f.files.Position(n.End())
	f.out = append(f.out, change{
		file: filepath.ToSlash(f.name), line: from.Line, within: f.within, what: what,
		from: from.Offset, to: to.Offset, old: f.source(n), new: replacement,
	})
}

func (f *finder) source(n ast.Node) string {
	return f.text[f.files.Position(n.Pos()).Offset:f.files.Position(n.End()).Offset]
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		f.condition(n.Cond)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					f.condition(e)
				}
			}
		}
	case *ast.BinaryExpr:
		f.operator(n)
	case *ast.ReturnStmt:
		f.returned(n)
	case *ast.ExprStmt:
		f.add("statement removed", n, "")
	case *ast.BasicLit:
		f.literal(n)
	case *ast.Ident:
		if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
			f.add("constant changed", n, other)
		}
	case *ast.Field:
		return false // a struct tag is not a constant
	}
	return true
}

// condition adds two changes: a deleted check and a negated check. Both keep every name in use, so
// that most changes compile.
func (f *finder) condition(e ast.Expr) {
	text := f.source(e)
	f.add("check deleted", e, "false && ("+text+")")
	f.add("check deleted", e, "false && ("+text+")") // listed twice, because this change matters most
	f.add("condition negated", e, "!("+text+")")
}

var otherOperator = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.ADD: token.SUB,
}

func (f *finder) operator(n *ast.BinaryExpr) {
	x, y := f.source(n.X), f.source(n.Y)
	switch n.Op {
	case token.LAND:
		f.add("operand dropped", n, "(true || "+x+") && "+y)
		f.add("operand dropped", n, x+" && (true || "+y+")")
	case token.LOR:
		f.add("operand dropped", n, "(false && "+x+") || "+y)
		f.add("operand dropped", n, x+" || (false && "+y+")")
	default:
		if other, ok := otherOperator[n.Op]; ok && !strings.Contains(x+y, `"`) {
			f.add("operator changed", n, x+" "+other.String()+" "+y)
		}
	}
}

// returned adds a change that drops a returned error.
func (f *finder) returned(n *ast.ReturnStmt) {
	if len(n.Results) == 0 {
		return
	}
	if last, ok := n.Results[len(n.Results)-1].(*ast.Ident); ok && strings.HasPrefix(last.Name, "err") {
		f.add("error forgotten", last, "nil")
	}
}

// conjunct matches one condition of an SQL statement.
var conjunct = regexp.MustCompile(` AND (NOT )?[\w.]+( (=|<>|>|<|>=|<=|IS|IS NOT) (\?\d*|\$\d+|NULL|[\w.]+))?`)

func (f *finder) literal(n *ast.BasicLit) {
	switch n.Kind {
	case token.INT:
		if i, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
			f.add("constant changed", n, strconv.FormatInt(i+1, 10))
		}
	case token.STRING:
		if !strings.Contains(n.Value, "WHERE") && !strings.Contains(n.Value, " AND ") {
			return
		}
		for _, at := range conjunct.FindAllStringIndex(n.Value, -1) {
			f.add("SQL condition dropped", n, n.Value[:at[0]]+n.Value[at[1]:])
		}
	}
}
