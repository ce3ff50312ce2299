package postgres

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
)

// features maps the rows of the table of features in docs/capacity.md to how the code uses them.
var features = map[string]*regexp.Regexp{
	"advisory locks":                    regexp.MustCompile(`pg_(try_)?advisory`),
	"`LISTEN`, `NOTIFY`":                regexp.MustCompile(`\bLISTEN\b|\bNOTIFY\b|pg_notify|WaitForNotification`),
	"`SERIALIZABLE`":                    regexp.MustCompile(`pgx\.Serializable|LEVEL SERIALIZABLE`),
	"`READ COMMITTED`":                  regexp.MustCompile(`pgx\.ReadCommitted`),
	"`REPEATABLE READ`, for exports":    regexp.MustCompile(`pgx\.RepeatableRead`),
	"`FOR UPDATE`, `FOR SHARE`":         regexp.MustCompile(`FOR (NO KEY )?(UPDATE|SHARE)`),
	"`SKIP LOCKED`":                     regexp.MustCompile(`SKIP LOCKED`),
	"`ON CONFLICT`":                     regexp.MustCompile(`ON CONFLICT`),
	"`RETURNING`":                       regexp.MustCompile(`RETURNING`),
	"CTEs that write":                   regexp.MustCompile(`\w+ AS \(\s*(INSERT|UPDATE|DELETE)`),
	"`LATERAL`":                         regexp.MustCompile(`LATERAL`),
	"window functions":                  regexp.MustCompile(`OVER \(`),
	"partial indexes":                   regexp.MustCompile(`CREATE [A-Z ]*INDEX [^;]*\)\s+WHERE`),
	"indexes on expressions":            regexp.MustCompile(`CREATE [A-Z ]*INDEX [^;]* \((hashtext|left|coalesce)\(`),
	"unique indexes":                    regexp.MustCompile(`CREATE UNIQUE INDEX`),
	"`CREATE INDEX CONCURRENTLY`":       regexp.MustCompile(`INDEX CONCURRENTLY`),
	"identity columns":                  regexp.MustCompile(`AS IDENTITY`),
	"foreign keys":                      regexp.MustCompile(`REFERENCES`),
	"triggers, PL/pgSQL":                regexp.MustCompile(`CREATE TRIGGER`),
	"storage parameters (`fillfactor`)": regexp.MustCompile(`fillfactor`),
	"`jsonb` functions":                 regexp.MustCompile(`jsonb_\w+\(`),
}

// TestPostgreSQLFeatures: OP-06. The capacity page says for each feature that distributed engines may lack whether it
// is used.
func TestPostgreSQLFeatures(t *testing.T) {
	var sql strings.Builder
	steps, err := migration.Steps(migration.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		sql.WriteString(regexp.MustCompile(`--.*`).ReplaceAllString(s.SQL, ""))
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	shared, err := filepath.Glob("../internal/column/*.go")
	if err != nil || len(shared) == 0 {
		t.Fatal(shared, err)
	}
	for _, file := range append(files, shared...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sql.WriteString(regexp.MustCompile(`(?m)^\s*//.*`).ReplaceAllString(string(b), ""))
	}
	page, err := os.ReadFile("../../../docs/capacity.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "| feature | used |")
	_, section, _ = strings.Cut(section, "\n|---|---|---|---|---|\n")
	section, _, ended := strings.Cut(section, "\n\n")
	if !found || !ended {
		t.Fatal("docs/capacity.md has no table of features")
	}
	rows := map[string]string{}
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, " | "); len(cells) > 2 {
			rows[strings.TrimPrefix(cells[0], "| ")] = cells[1]
		}
	}
	for name, re := range features {
		want := map[bool]string{true: "yes", false: "no"}[re.MatchString(sql.String())]
		if rows[name] != want {
			t.Errorf("%s: the page says %q, the code %q", name, rows[name], want)
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("the page names %q, which no expression finds", name)
	}
}
