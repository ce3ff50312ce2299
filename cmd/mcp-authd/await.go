package main

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/storage/postgres"
)

const (
	awaitEvery = time.Second
	awaitTold  = 30 * time.Second // until a server that waits says so again
)

// errStopped: the operator stopped a server that had not begun to serve.
var errStopped = errors.New("stopped")

// await does what a server does at its start, and waits for a PostgreSQL that is not there.
// Those who start both at once need no order; what only an operator can mend is an error
// as before.
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
