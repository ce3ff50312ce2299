package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage/export"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// exported is the output of export --json and import --json.
type exported struct {
	File    string    `json:"file"`
	Tables  int       `json:"tables"`
	Rows    int       `json:"rows"`
	At      time.Time `json:"at"`
	Version string    `json:"version"` // of the program that wrote it
}

// stream is the file name for standard input or output.
const stream = "-"

func newExportCommand(s std) *cobra.Command {
	var where settings
	var live, asJSON bool
	c := &cobra.Command{
		Use: "export FILE", Short: "Write the whole installation to a file, to move it to another database",
		Long: "Writes the complete database, SQLite or PostgreSQL, to a new file that only you can read; - is\n" +
			"standard output. mcp-authd import reads it into a new database of either kind. Users, applications,\n" +
			"grants, sessions, keys and the audit log move, without a new sign-in of any user. The file does not\n" +
			"contain the secret key: copy the key separately.\n\n" +
			"Stop the servers first: later changes are missing from the file. --live writes it while they run, to\n" +
			"try a move.",
		Example: "  mcp-authd export authd.export\n" +
			"  mcp-authd export - | ssh new.example.com mcp-authd import -",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			a, err := where.open(ctx, s)
			if err != nil {
				return err
			}
			defer a.Close()
			if !live {
				if err := a.atRest(ctx); err != nil {
					return err
				}
			}
			h := export.Header{
				Version: version().Version, Issuer: a.config.Issuer, At: time.Now().UTC().Truncate(time.Second),
			}
			sum, err := a.exportTo(ctx, args[0], h)
			if err != nil {
				return err
			}
			if args[0] != stream { // the reader of a pipe may have stored nothing
				if err := noteBackup(ctx, a.store, h.At); err != nil {
					return a.explainStore(err)
				}
			}
			done := exported{args[0], sum.Tables, sum.Rows, h.At, h.Version}
			switch {
			case args[0] == stream:
				return nil
			case asJSON:
				return printJSON(s.out, done)
			}
			_, err = fmt.Fprintf(s.out, "exported %s of %s to %s\n%s\n", label.Count(done.Rows, "row", "rows"),
				label.Count(done.Tables, "table", "tables"), args[0], a.whereTheKeyIs())
			return err
		},
	}
	where.add(c)
	c.Flags().BoolVar(&live, "live", false, "export even while servers run; later changes are missing from the file")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// whereTheKeyIs says which other files must move.
func (a *app) whereTheKeyIs() string {
	if files := a.keyFiles(); len(files) > 0 {
		return "the secret key is not in it: take " + strings.Join(files, " and ") + " along"
	}
	return "the secret key is not in it: set secret_key to the same value where it is imported"
}

// atRest returns an error while servers use the database.
func (a *app) atRest(ctx context.Context) error {
	running, err := a.running(ctx)
	if err != nil || len(running) == 0 {
		return err
	}
	return fmt.Errorf("servers use this database (%s): stop them first, or what they do from now on is lost; "+
		"to try a move, use --live", strings.Join(running, ", "))
}

// running names the servers that use the database.
func (a *app) running(ctx context.Context) (names []string, err error) {
	if !a.config.Postgres() {
		processes, err := sqlite.Servers(a.config.SQLitePath())
		for _, p := range processes {
			names = append(names, "process "+p)
		}
		return names, err
	}
	replicas, _, err := a.store.Replicas(ctx, time.Now())
	for _, r := range replicas {
		if time.Since(r.SeenAt) < time.Minute { // a running server updates it four times a minute
			names = append(names, r.Name+" at "+r.Address)
		}
	}
	return names, err
}

// exportTo writes the export. It removes an incomplete file.
func (a *app) exportTo(ctx context.Context, file string, h export.Header) (sum export.Summary, err error) {
	to := a.std.out
	if file == stream {
		if f, isFile := to.(*os.File); isFile && term.IsTerminal(int(f.Fd())) {
			return sum, errors.New("an export is no text for a terminal: name a file, or pipe it to mcp-authd import -")
		}
	} else {
		f, openErr := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		switch {
		case errors.Is(openErr, fs.ErrExist):
			return sum, fmt.Errorf("%s exists already; choose another name", file)
		case errors.Is(openErr, fs.ErrNotExist):
			return sum, fmt.Errorf("the directory of %s does not exist; make it first", file)
		case openErr != nil:
			return sum, explainFile(file, openErr)
		}
		defer func() {
			if err == nil {
				err = errors.Join(f.Sync(), f.Close())
			} else {
				_ = f.Close()
			}
			if err != nil {
				err = errors.Join(err, os.Remove(file))
			}
		}()
		to = f
	}
	out := &written{to: to}
	sum, err = a.exportDatabase(ctx, out, h)
	switch {
	case err != nil && ctx.Err() != nil:
		return sum, fmt.Errorf("nothing was exported: it was stopped before its end (%w); start it again", ctx.Err())
	case out.err != nil:
		return sum, explainFile(file, out.err)
	case errors.Is(err, export.ErrText):
		return sum, fmt.Errorf("%w: PostgreSQL could not keep it; change it first", err)
	}
	return sum, a.explainExport(err)
}

// written keeps a write error, to distinguish it from a database error.
type written struct {
	to  io.Writer
	err error
}

func (w *written) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	if err != nil {
		w.err = err
	}
	return n, err
}

func (a *app) exportDatabase(ctx context.Context, to io.Writer, h export.Header) (export.Summary, error) {
	if store, isPostgres := a.store.(*postgres.Store); isPostgres {
		return store.Export(ctx, to, h)
	}
	return sqlite.Export(ctx, a.config.SQLitePath(), to, h)
}

// explainExport explains an error of the database.
func (a *app) explainExport(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, export.ErrBroken) {
		return fmt.Errorf("%s; copy the file once more, or write another with: mcp-authd export", oneLine(err))
	}
	for _, plain := range []error{export.ErrForm, export.ErrNewer, export.ErrMigration} {
		if errors.Is(err, plain) {
			return err
		}
	}
	return a.explainStore(err)
}

func newImportCommand(s std) *cobra.Command {
	var where settings
	var asJSON bool
	c := &cobra.Command{
		Use: "import FILE", Short: "Read an export into a new database",
		Long: "Reads an export of mcp-authd into the database of the configuration, SQLite or PostgreSQL; - is\n" +
			"standard input. The database must not hold an installation yet. The command imports everything or\n" +
			"nothing. The secret key and the issuer must be the same as in the exported installation:\n" +
			"applications identify the server by its issuer.",
		Example: "  mcp-authd import authd.export --config postgres.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := where.load(s)
			if err != nil {
				return err
			}
			from, err := s.openExport(args[0])
			if err != nil {
				return err
			}
			defer from.Close()
			r, err := export.NewReader(from)
			if err == nil {
				err = a.importFrom(c.Context(), r)
			}
			switch {
			case err != nil && c.Context().Err() != nil:
				return errors.New("nothing was imported: it was stopped before its end; start it again")
			case errors.Is(err, export.ErrMigration):
				return fmt.Errorf("%s; once its cause is gone: mcp-authd migrate up", oneLine(err))
			case err != nil:
				return fmt.Errorf("nothing was imported: %w", err)
			}
			h, sum := r.Header(), r.Summary()
			if args[0] != stream { // input from a pipe may not exist as a file
				a.noteCopy(c.Context(), noteOrigin, h.At)
			}
			if asJSON {
				return printJSON(s.out, exported{args[0], sum.Tables, sum.Rows, h.At, h.Version})
			}
			_, err = fmt.Fprintf(s.out, "imported %s of %s, exported %s by version %s\n",
				label.Count(sum.Rows, "row", "rows"), label.Count(sum.Tables, "table", "tables"), moment(h.At),
				printable(h.Version))
			return err
		},
	}
	where.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (s std) openExport(file string) (io.ReadCloser, error) {
	if file == stream {
		return io.NopCloser(s.in), nil
	}
	f, err := os.Open(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s does not exist", file)
	case err != nil:
		return nil, explainFile(file, err)
	}
	return f, nil
}

// importFrom imports an export that matches the configuration.
func (a *app) importFrom(ctx context.Context, r *export.Reader) error {
	h := r.Header()
	if h.Issuer != a.config.Issuer {
		return fmt.Errorf("the export is of %s, and the configuration (%s) has the issuer %s: set it to that of the export",
			printable(h.Issuer), a.configSource(), a.config.Issuer)
	}
	if err := a.loadKeys(a.movedKey); err != nil {
		return err
	}
	if err := keysFit(ctx, h.Fingerprint, a.keys); err != nil {
		return err
	}
	if a.config.Postgres() {
		err := postgres.Import(ctx, string(a.config.Database.URL), r, postgres.Options{Logger: a.log})
		if errors.Is(err, export.ErrNotEmpty) {
			return fmt.Errorf("%w; name a new database in database.url", err)
		}
		return a.explainExport(err)
	}
	path := a.config.SQLitePath()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return a.explainDirectory(fmt.Errorf("the data directory cannot be made: %w", err))
	}
	err := sqlite.Import(ctx, path, r, sqlite.Options{Logger: a.log})
	if errors.Is(err, export.ErrNotEmpty) {
		return fmt.Errorf("there is a database already: %s; choose another directory with --data, or move it away", path)
	}
	return a.explainExport(err)
}

// movedKey reads the key in the data directory. An import creates none.
func (a *app) movedKey() ([]byte, error) {
	key, err := secrets.ReadKey(a.keyPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf(
			"the secret key is missing: copy %s of the installation that it is of to %s, or set secret_key", keyFile,
			a.keyPath(),
		)
	}
	return key, a.explainDirectory(err)
}

// movedFingerprint is the fingerprint of the master key in a moved database.
type movedFingerprint []byte

// Fingerprint implements keys.Fingerprints.
func (f movedFingerprint) Fingerprint(context.Context, []byte) ([]byte, error) { return f, nil }

// keysFit returns an error if a database belongs to none of the master keys.
func keysFit(ctx context.Context, fingerprint []byte, secretKeys [][]byte) error {
	return explainKey(keys.Belongs(ctx, movedFingerprint(fingerprint), secretKeys))
}
