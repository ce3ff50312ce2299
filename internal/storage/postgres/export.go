package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage/export"
	"github.com/mcp-authd/mcp-authd/internal/storage/migration"
)

// kinds maps column types to kinds.
var kinds = map[string]export.Kind{
	"text": export.Text, "bytea": export.Bytes, "bigint": export.Integer, "integer": export.Integer,
	"boolean": export.Integer,
}

const columnsOf = `SELECT column_name, data_type FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position`

// lastNumber selects the last number of a sequence. A sequence that was not called yet contains the
// next number instead.
const lastNumber = "SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END FROM "

// Export writes the installation in the database, as of one moment. h contains the data that the
// database does not know. It returns a wrapped storage.ErrSchema if migrations are missing, and
// export.ErrText if a text cannot be exported.
func (s *Store) Export(ctx context.Context, to io.Writer, h export.Header) (sum export.Summary, err error) {
	if err := s.Ready(ctx); err != nil {
		return sum, err
	}
	all, err := s.MigrationStatus(ctx)
	if err != nil {
		return sum, err
	}
	for _, st := range all {
		if st.AppliedAt.IsZero() {
			return sum, fmt.Errorf("postgres: export: %w", schema(migration.ErrPending))
		}
	}
	h.Migration = len(all)
	err = s.alone(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, "SELECT value FROM settings WHERE name = 'fingerprint'").Scan(&h.Fingerprint)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		w, err := export.NewWriter(to, h)
		if err != nil {
			return err
		}
		for _, name := range export.Tables() {
			if err := exportTable(ctx, tx, w, name); err != nil {
				return err
			}
		}
		sum, err = w.Close()
		return err
	})
	if err != nil {
		return sum, fmt.Errorf("postgres: export: %w", err)
	}
	return sum, nil
}

// alone runs fn in a transaction without a time limit, on its own connection.
func (s *Store) alone(ctx context.Context, o pgx.TxOptions, fn func(pgx.Tx) error) error {
	config := s.pool.Config().ConnConfig
	delete(config.RuntimeParams, "statement_timeout") // the timeout of verbs
	config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return replicated(conn, func() error { return pgx.BeginTxFunc(ctx, conn, o, fn) })
}

func exportTable(ctx context.Context, tx pgx.Tx, w *export.Writer, name string) error {
	t, _, err := tableOf(ctx, tx, name)
	if err != nil {
		return err
	}
	if column := export.Numbered(name); column != "" {
		if err := tx.QueryRow(ctx, lastNumber+name+"_"+column+"_seq").Scan(&t.Last); err != nil {
			return err
		}
	}
	if err := w.Table(t); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, "SELECT "+t.Names()+" FROM "+name+" WHERE "+export.Moves(name))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return err
		}
		for i, v := range values {
			if n, isShort := v.(int32); isShort {
				values[i] = int64(n)
			}
		}
		if err := w.Row(values); err != nil {
			return err
		}
	}
	return rows.Err()
}

// tableOf returns the columns of a table, and which of them are booleans.
func tableOf(ctx context.Context, tx pgx.Tx, name string) (t export.Table, boolean map[string]bool, err error) {
	t.Name, boolean = name, map[string]bool{}
	rows, err := tx.Query(ctx, columnsOf, name)
	if err != nil {
		return t, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var column, kind string
		if err := rows.Scan(&column, &kind); err != nil {
			return t, nil, err
		}
		t.Columns = append(t.Columns, export.Column{Name: column, Kind: kinds[kind]})
		boolean[column] = kind == "boolean"
	}
	return t, boolean, rows.Err()
}

// Import writes an export into the database of the URL, which must have no installation, and
// migrates it to this program's schema. Either all rows are written or none. It returns a wrapped
// export.ErrNotEmpty if the database has rows, and export.ErrForm, ErrBroken or ErrNewer if the
// export cannot be used. If a later migration fails, the rows stay, and it returns a wrapped
// export.ErrMigration. Open tries it again.
func Import(ctx context.Context, url string, from *export.Reader, o Options) error {
	steps, err := migration.Steps(migration.Postgres)
	if err != nil {
		return err
	}
	last := from.Header().Migration
	if last > len(steps) {
		return export.ErrNewer
	}
	o.upTo = last
	if err := fillNew(ctx, url, from, o); err != nil {
		return err
	}
	o.upTo = 0
	if err := migrate(ctx, url, o); err != nil {
		return fmt.Errorf("%w: %w", export.ErrMigration, err)
	}
	return nil
}

func migrate(ctx context.Context, url string, o Options) error {
	s, err := Open(ctx, url, o)
	if err != nil {
		return err
	}
	return errors.Join(s.MigrateNow(ctx), s.Close())
}

func fillNew(ctx context.Context, url string, from *export.Reader, o Options) error {
	s, err := Open(ctx, url, o)
	if err != nil {
		return err
	}
	defer s.Close()
	err = s.alone(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { return fill(ctx, tx, from) })
	if err != nil {
		return fmt.Errorf("postgres: import: %w", err)
	}
	return nil
}

func fill(ctx context.Context, tx pgx.Tx, from *export.Reader) error {
	for _, name := range export.Tables() {
		t, _, err := tableOf(ctx, tx, name)
		if err != nil {
			return err
		}
		if len(t.Columns) == 0 {
			continue // from a migration that the export lacks
		}
		if err := empty(ctx, tx, name); err != nil {
			return err
		}
	}
	for {
		t, err := from.NextTable()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = fillTable(ctx, tx, from, t)
		}
		if err != nil {
			return err
		}
	}
}

// empty checks that a table has only the rows of a new database, and removes these. If a server
// starts at the same time, one of the two fails, because only one signing key can be active.
func empty(ctx context.Context, tx pgx.Tx, name string) error {
	var rows bool
	err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM "+name+" WHERE "+export.Used(name)+")").Scan(&rows)
	switch {
	case err != nil:
		return err
	case rows:
		return fmt.Errorf("%w (there are %s)", export.ErrNotEmpty, name)
	}
	_, err = tx.Exec(ctx, "DELETE FROM "+name+" WHERE "+export.Moves(name))
	return err
}

func fillTable(ctx context.Context, tx pgx.Tx, from *export.Reader, t export.Table) error {
	_, boolean, err := tableOf(ctx, tx, t.Name)
	if err != nil {
		return err
	}
	var columns []string
	for _, c := range t.Columns {
		columns = append(columns, c.Name)
	}
	rows := &source{from: from, boolean: make([]bool, len(columns))}
	for i, name := range columns {
		rows.boolean[i] = boolean[name]
	}
	switch _, err := tx.CopyFrom(ctx, pgx.Identifier{t.Name}, columns, rows); {
	case rows.err != nil:
		return rows.err
	case err != nil:
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	column := export.Numbered(t.Name)
	if column == "" {
		return nil
	}
	// Numbers are never reused.
	_, err = tx.Exec(ctx, fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s RESTART WITH %d", t.Name, column, t.Last+1))
	return err
}

// source passes the rows of a table to CopyFrom.
type source struct {
	from    *export.Reader
	boolean []bool
	row     []any
	err     error
}

// Next implements pgx.CopyFromSource.
func (s *source) Next() bool {
	s.row, s.err = s.from.NextRow()
	if errors.Is(s.err, io.EOF) {
		s.err = nil
		return false
	}
	return s.err == nil
}

// Values implements pgx.CopyFromSource.
func (s *source) Values() ([]any, error) {
	for i, v := range s.row {
		if n, isNumber := v.(int64); isNumber && s.boolean[i] {
			s.row[i] = n != 0
		}
	}
	return s.row, nil
}

// Err implements pgx.CopyFromSource.
func (s *source) Err() error { return s.err }
