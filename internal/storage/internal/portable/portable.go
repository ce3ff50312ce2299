// Package portable holds the verbs whose SQL is the same in SQLite and PostgreSQL. Most of them read
// or write one row. A verb stays with its backend if its statements or locks differ.
//
// Statements number their parameters $1, $2. Both drivers accept this form, so a statement is the
// same text in both, and each connection prepares it once. A statement must not also contain ?1,
// which SQLite counts as another parameter.
package portable

import "context"

// Engine runs verbs in a database. Each method passes the verb through the hooks of the store. verb
// is the name of the method that implements it. fn may run several times.
type Engine interface {
	// Read is for a verb that only reads.
	Read(ctx context.Context, verb string, fn func(c Conn) error) error
	// Write is for a verb of one statement, or whose further statements need no common transaction.
	Write(ctx context.Context, verb string, fn func(c Conn) error) error
	// Transact runs all statements of a verb in one transaction.
	Transact(ctx context.Context, verb string, fn func(c Conn) error) error
}

// Conn runs the statements of one verb.
type Conn interface {
	// Exec returns the number of rows that a statement changed.
	Exec(query string, args ...any) (int64, error)
	// One scans the first row into dest. Without a row it returns storage.ErrNotFound.
	One(dest []any, query string, args ...any) error
	// Each calls f with every row until f fails.
	Each(f func(Row) error, query string, args ...any) error
}

// Row is one row of a result.
type Row = interface{ Scan(dest ...any) error }

// Verbs are the portable verbs of a store, which embeds them.
type Verbs struct {
	audiences
	auditLog
	auditSinks
	certificates
	clients
	counters
	departures
	devices
	events
	filedApplications
	grants
	groups
	identities
	keyedRequests
	keys
	nodes
	notices
	oneTimeLinks
	outbox
	pauses
	proposals
	providerGroups
	pushedRequests
	remoteSignIns
	replicas
	resources
	tasks
	tools
	trustEntries
	trustLinks
	upstreams
	users
	ways
}

// New returns the verbs that run in db.
func New(db Engine) Verbs {
	return Verbs{
		audiences{db},
		auditLog{db},
		auditSinks{db},
		certificates{db},
		clients{db},
		counters{db},
		departures{db},
		devices{db},
		events{db},
		filedApplications{db},
		grants{db},
		groups{db},
		identities{db},
		keyedRequests{db},
		keys{db},
		nodes{db},
		notices{db},
		oneTimeLinks{db},
		outbox{db},
		pauses{db},
		proposals{db},
		providerGroups{db},
		pushedRequests{db},
		remoteSignIns{db},
		replicas{db},
		resources{db},
		tasks{db},
		tools{db},
		trustEntries{db},
		trustLinks{db},
		upstreams{db},
		users{db},
		ways{db},
	}
}

// Each returns f's result for every row. The list is a new one each time, because a verb may run
// twice.
func Each[T any](c Conn, f func(Row) (T, error), query string, args ...any) (out []T, err error) {
	err = c.Each(func(row Row) error {
		one, err := f(row)
		out = append(out, one)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// changed returns missed when a statement changed no row.
func changed(missed error) func(int64, error) error {
	return func(n int64, err error) error {
		if err == nil && n == 0 {
			return missed
		}
		return err
	}
}
