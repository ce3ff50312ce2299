package installation

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
)

const (
	awaitEvery = time.Second
	awaitTold  = 30 * time.Second // interval of repeated log messages while waiting
)

// ErrStopped is returned if the server was stopped before it served.
var ErrStopped = errors.New("stopped")

// Await runs start, and waits while PostgreSQL is not reachable, so that both can be started in any
// order. Errors that only an administrator can fix are returned at once.
func (in *Installation) Await(ctx context.Context, start func(context.Context) error) error {
	began, told := in.now(), time.Time{}
	waited := func() slog.Attr { return audit.Milliseconds("waited", in.now().Sub(began).Round(time.Second)) }
	for {
		err := start(ctx)
		switch {
		case ctx.Err() != nil && err != nil:
			return ErrStopped
		case err != nil && in.Config.Postgres() && postgres.Away(err):
		case err == nil && !told.IsZero():
			in.Log.Info("the database is there", waited())
			return nil
		default:
			return err
		}
		if in.now().Sub(told) >= awaitTold {
			told = in.now()
			in.Log.Warn("waiting for the database: no PostgreSQL takes connections and writes at database.url; start it, or stop this server with Ctrl-C or SIGTERM",
				"hosts", postgres.Hosts(string(in.Config.Database.URL)),
				waited(), "cause", label.FirstLine(err))
		}
		select {
		case <-ctx.Done():
			return ErrStopped
		case <-time.After(awaitEvery):
		}
	}
}
