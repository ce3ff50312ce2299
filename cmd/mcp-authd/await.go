package main

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
)

const (
	awaitEvery = time.Second
	awaitTold  = 30 * time.Second // interval of repeated log messages while waiting
)

// errStopped is returned if the server was stopped before it served.
var errStopped = errors.New("stopped")

// await runs start, and waits while PostgreSQL is not reachable, so that both can be started in any
// order. Errors that only an administrator can fix are returned at once.
func (a *app) await(ctx context.Context, start func(context.Context) error) error {
	began, told := time.Now(), time.Time{}
	for {
		err := start(ctx)
		switch {
		case ctx.Err() != nil && err != nil:
			return errStopped
		case err != nil && a.config.Postgres() && postgres.Away(err):
		case err == nil && !told.IsZero():
			a.log.Info("the database is there", audit.Milliseconds("waited", time.Since(began).Round(time.Second)))
			return nil
		default:
			return err
		}
		if time.Since(told) >= awaitTold {
			told = time.Now()
			a.log.Warn("waiting for the database: no PostgreSQL takes connections and writes at database.url; start it, or stop this server with Ctrl-C or SIGTERM",
				"hosts", postgres.Hosts(string(a.config.Database.URL)),
				audit.Milliseconds("waited", time.Since(began).Round(time.Second)), "cause", oneLine(err))
		}
		select {
		case <-ctx.Done():
			return errStopped
		case <-time.After(awaitEvery):
		}
	}
}
