package admin

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/trust"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// FreshFor is the default maximum age of a recent authentication.
const FreshFor = 10 * time.Minute

// Service runs operations on an installation. Access that an operation revokes has ended when it
// returns. With very many grants, a server updates the status lists later.
type Service struct {
	Store    storage.Store
	Users    *users.Users
	Notifier *notice.Notifier // nil if users are not notified
	Config   *config.Loaded
	Audit    *audit.Recorder
	// AuditRequired makes changes by users and programs wait until they are in the audit log.
	AuditRequired bool
	// Ways returns the authentication methods and Registry the client registry. Both are called on
	// demand.
	Ways     func() (*ways.Ways, error)
	Registry func() (*dcr.Registry, error)
	// Keys returns the manager of the signing keys.
	Keys func(context.Context) (*keys.Manager, error)
	// Attempts finds recorded attempts of clients.
	Attempts attempt.Finder
	// AuditSigner returns the signer of audit log checkpoints.
	AuditSigner func(context.Context) (*auditlog.Signer, error)
	// AuditChecker returns a signer that only checks the audit log and changes nothing. It returns
	// storage.ErrNotFound before the log's first start.
	AuditChecker func(context.Context) (*auditlog.Signer, error)
	// Delegation returns sign-in at providers: the server's own, or a read-only one.
	Delegation func() (*thirdparty.Delegation, error)
	// Issuers returns the verifier of assertions from trusted issuers. Its argument is the issuer
	// of this server.
	Issuers func(issuer string) (*trust.Issuers, error)
	// Clients returns the configured clients.
	Clients func() ([]storage.Client, error)
	// Own holds the resources of the server itself, which appear in no list.
	Own []storage.Resource
	// Operations lists the operations that proposals can name: [All].
	Operations Operations
	// Two lists the operations that need two administrators. Ring returns the keys that encrypt
	// their inputs while they wait.
	Two  []string
	Ring func() (*secrets.Ring, error)
	// FreshFor is how recent an authentication must be for changes that cannot be undone.
	FreshFor time.Duration
	Now      func() time.Time
	Version  string // of the program
	Replica  string // the ID of the server that runs the operations; "" for a command

	mailCheck mailCheck
}

// toTheEnd reads a whole list from the store.
func toTheEnd[T any](read func(after string, limit int) ([]T, error), key func(T) string) ([]T, error) {
	var all []T
	for after := ""; ; {
		page, err := read(after, MaxPage)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < MaxPage {
			return all, nil
		}
		after = key(page[len(page)-1])
	}
}
