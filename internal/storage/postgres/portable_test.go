package postgres

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
)

// forbidden matches SQL that fails behind a transaction pooler, or that other servers of the
// PostgreSQL protocol do not know.
func forbidden() *regexp.Regexp {
	return regexp.MustCompile(
		`(?i)\b(pg_(try_)?advisory\w*|LISTEN|NOTIFY|(BIG|SMALL)?SERIAL|NEXTVAL|SEQUENCE|UNLOGGED|` +
			`EXTENSION|TRIGGER|PLPGSQL|FUNCTION|PROCEDURE|DO\s*\$|ctid|xmin|LOCK\s+TABLE|TEMP(ORARY)?\s+TABLE|` +
			`SET\s+(SESSION|statement_timeout|lock_timeout)|PREPARE|DECLARE)\b`)
}

// outbox is the only migration with triggers (docs/decisions/providers.md): receivers must also
// learn of cuts by a replica of the previous version, which only the database can see.
const outbox = "outbox"

func TestTheSQLIsPortable(t *testing.T) {
	re := forbidden()
	steps, err := migration.Steps(migration.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	comment := regexp.MustCompile(`--.*`)
	for _, s := range steps {
		if s.Name == outbox {
			continue
		}
		if found := re.FindString(comment.ReplaceAllString(s.SQL, "")); found != "" {
			t.Errorf("migration %d: %s is not portable", s.Version, found)
		}
		if regexp.MustCompile(`(?im)^\s*(INSERT|UPDATE|DELETE)\b`).MatchString(s.SQL) {
			t.Errorf("migration %d mixes data with definitions", s.Version)
		}
	}
	n := 0
	for _, text := range literals(t) {
		if n++; re.MatchString(text) {
			t.Errorf("%q: %s is not portable", text, re.FindString(text))
		}
	}
	if n < 50 {
		t.Errorf("looked at %d literals: the scan misses the SQL", n)
	}
}

func TestTheScanFindsWhatIsForbidden(t *testing.T) {
	for _, sql := range []string{
		"SELECT pg_advisory_xact_lock(1)", "select PG_TRY_ADVISORY_LOCK(1)", "LISTEN x", "id bigserial",
		"CREATE UNLOGGED TABLE x ()", "create trigger x", "WHERE ctid = $1", "SET statement_timeout = 1"} {
		if !forbidden().MatchString(sql) {
			t.Errorf("%q was not found", sql)
		}
	}
}

// literals returns the strings in the code of this package and of the portable verbs.
func literals(t *testing.T) (out []string) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	shared, err := filepath.Glob("../internal/portable/*.go")
	if err != nil || len(shared) == 0 {
		t.Fatalf("%d files of portable verbs, %v", len(shared), err)
	}
	for _, file := range append(files, shared...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				text, err := strconv.Unquote(l.Value)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, text)
			}
			return true
		})
	}
	return out
}
