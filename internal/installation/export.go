package installation

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

	"golang.org/x/term"

	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage/export"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// Moved describes an export that was written or read. It is the output of export --json and import
// --json.
type Moved struct {
	File    string    `json:"file"`
	Tables  int       `json:"tables"`
	Rows    int       `json:"rows"`
	At      time.Time `json:"at"`
	Version string    `json:"version"` // of the program that wrote it
}

// Export writes the whole installation, which must be open, to a new file, and records that. Unless
// live is set, it returns an error while servers use the database.
func (in *Installation) Export(ctx context.Context, file string, live bool) (Moved, error) {
	if !live {
		if err := in.atRest(ctx); err != nil {
			return Moved{}, err
		}
	}
	h := export.Header{
		Version: in.host.Version, Issuer: in.Config.Issuer, At: in.now().UTC().Truncate(time.Second),
	}
	sum, err := in.exportTo(ctx, file, h)
	if err != nil {
		return Moved{}, err
	}
	if file != Stream { // the reader of a pipe may have stored nothing
		if err := noteBackup(ctx, in.Store, h.At); err != nil {
			return Moved{}, in.ExplainStore(err)
		}
	}
	return Moved{file, sum.Tables, sum.Rows, h.At, h.Version}, nil
}

// Import reads an export into the database of the configuration, which must be new. It imports
// everything or nothing.
func (in *Installation) Import(ctx context.Context, file string) (Moved, error) {
	from, err := in.openExport(file)
	if err != nil {
		return Moved{}, err
	}
	defer from.Close()
	r, err := export.NewReader(from)
	if err == nil {
		err = in.importFrom(ctx, r)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return Moved{}, errors.New("nothing was imported: it was stopped before its end; start it again")
	case errors.Is(err, export.ErrMigration):
		return Moved{}, fmt.Errorf("%s; once its cause is gone: mcp-authd migrate up", label.FirstLine(err))
	case err != nil:
		return Moved{}, fmt.Errorf("nothing was imported: %w", err)
	}
	h, sum := r.Header(), r.Summary()
	if file != Stream { // input from a pipe may not exist as a file
		in.noteCopy(ctx, noteOrigin, h.At)
	}
	return Moved{file, sum.Tables, sum.Rows, h.At, h.Version}, nil
}

// Stream is the file name for standard input or output.
const Stream = "-"

// WhereTheKeyIs says which other files must move.
func (in *Installation) WhereTheKeyIs() string {
	if files := in.KeyFiles(); len(files) > 0 {
		return "the secret key is not in it: take " + strings.Join(files, " and ") + " along"
	}
	return "the secret key is not in it: set secret_key to the same value where it is imported"
}

// atRest returns an error while servers use the database.
func (in *Installation) atRest(ctx context.Context) error {
	running, err := in.running(ctx)
	if err != nil || len(running) == 0 {
		return err
	}
	return fmt.Errorf("servers use this database (%s): stop them first, or their later changes are lost; "+
		"to try a move, use --live", strings.Join(running, ", "))
}

// running names the servers that use the database.
func (in *Installation) running(ctx context.Context) (names []string, err error) {
	if !in.Config.Postgres() {
		processes, err := sqlite.Servers(in.Config.SQLitePath())
		for _, p := range processes {
			names = append(names, "process "+p)
		}
		return names, err
	}
	replicas, _, err := in.Store.Replicas(ctx, in.now())
	for _, r := range replicas {
		if in.now().Sub(r.SeenAt) < time.Minute { // a running server updates it four times a minute
			names = append(names, r.Name+" at "+r.Address)
		}
	}
	return names, err
}

// exportTo writes the export. It removes an incomplete file.
func (in *Installation) exportTo(ctx context.Context, file string, h export.Header) (sum export.Summary, err error) {
	to := in.host.Stdout
	if file == Stream {
		if f, isFile := to.(*os.File); isFile && term.IsTerminal(int(f.Fd())) {
			return sum, errors.New("an export must not go to a terminal: name a file, or pipe it to mcp-authd import -")
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
	sum, err = in.exportDatabase(ctx, out, h)
	switch {
	case err != nil && ctx.Err() != nil:
		return sum, fmt.Errorf("nothing was exported: it was stopped before its end (%w); start it again", ctx.Err())
	case out.err != nil:
		return sum, explainFile(file, out.err)
	case errors.Is(err, export.ErrText):
		return sum, fmt.Errorf("%w: PostgreSQL could not keep it; change it first", err)
	}
	return sum, in.explainExport(err)
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

func (in *Installation) exportDatabase(ctx context.Context, to io.Writer, h export.Header) (export.Summary, error) {
	if store, isPostgres := in.Store.(*postgres.Store); isPostgres {
		return store.Export(ctx, to, h)
	}
	return sqlite.Export(ctx, in.Config.SQLitePath(), to, h)
}

// explainExport explains an error of the database.
func (in *Installation) explainExport(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, export.ErrBroken) {
		return fmt.Errorf("%s; copy the file once more, or write another with: mcp-authd export", label.FirstLine(err))
	}
	for _, plain := range []error{export.ErrForm, export.ErrNewer, export.ErrMigration} {
		if errors.Is(err, plain) {
			return err
		}
	}
	return in.ExplainStore(err)
}

func (in *Installation) openExport(file string) (io.ReadCloser, error) {
	if file == Stream {
		return io.NopCloser(in.host.Stdin), nil
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
func (in *Installation) importFrom(ctx context.Context, r *export.Reader) error {
	h := r.Header()
	if h.Issuer != in.Config.Issuer {
		return fmt.Errorf("the export is of %s, and the configuration (%s) has the issuer %s: set it to the same",
			label.Printable(h.Issuer), in.Source(), in.Config.Issuer)
	}
	if err := in.loadKeys(in.movedKey); err != nil {
		return err
	}
	if err := keysFit(ctx, h.Fingerprint, in.Keys); err != nil {
		return err
	}
	if in.Config.Postgres() {
		err := postgres.Import(ctx, string(in.Config.Database.URL), r, postgres.Options{Logger: in.Log})
		if errors.Is(err, export.ErrNotEmpty) {
			return fmt.Errorf("%w; name a new database in database.url", err)
		}
		return in.explainExport(err)
	}
	path := in.Config.SQLitePath()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return in.explainDirectory(fmt.Errorf("the data directory cannot be made: %w", err))
	}
	err := sqlite.Import(ctx, path, r, sqlite.Options{Logger: in.Log})
	if errors.Is(err, export.ErrNotEmpty) {
		return fmt.Errorf("there is a database already: %s; choose another directory with --data, or move it away", path)
	}
	return in.explainExport(err)
}

// movedKey reads the key in the data directory. An import creates none.
func (in *Installation) movedKey() ([]byte, error) {
	key, err := secrets.ReadKey(in.KeyPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf(
			"the secret key is missing: copy %s of the installation that it is of to %s, or set secret_key", KeyFile,
			in.KeyPath(),
		)
	}
	return key, in.explainDirectory(err)
}

// movedFingerprint is the fingerprint of the master key in a moved database.
type movedFingerprint []byte

// Fingerprint implements keys.Fingerprints.
func (f movedFingerprint) Fingerprint(context.Context, []byte) ([]byte, error) { return f, nil }

// keysFit returns an error if a database belongs to none of the master keys.
func keysFit(ctx context.Context, fingerprint []byte, secretKeys [][]byte) error {
	return explainKey(keys.Belongs(ctx, movedFingerprint(fingerprint), secretKeys))
}
