package admin

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/attempt"
	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/keys"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/thirdparty"
	"github.com/mcp-authd/mcp-authd/trust"
)

// FreshFor is for how long a proof of who somebody is counts as fresh, where nothing else is configured.
const FreshFor = 10 * time.Minute

// Service carries operations out on an installation. What one cuts has ended when it returns; where there
// were very many grants, a server marks them for the status lists by itself.
type Service struct {
	Store    storage.Store
	Users    *users.Users
	Notifier *notice.Notifier // nil: people are not told
	Config   *config.Loaded
	Audit    *audit.Recorder
	// AuditRequired has changes by people and programs wait until they are in the audit log.
	AuditRequired bool
	// Ways makes the ways in, and Registry what knows clients; each when it is needed.
	Ways     func() (*ways.Ways, error)
	Registry func() (*dcr.Registry, error)
	// Keys makes what manages the signing keys.
	Keys func(context.Context) (*keys.Manager, error)
	// Attempts finds what clients tried.
	Attempts attempt.Finder
	// AuditSigner makes what signs checkpoints of the audit log.
	AuditSigner func(context.Context) (*auditlog.Signer, error)
	// AuditChecker makes what checks the audit log and changes nothing. storage.ErrNotFound before its first start.
	AuditChecker func(context.Context) (*auditlog.Signer, error)
	// Delegation is sign-in at providers: that of the server, or one that only looks.
	Delegation func() (*thirdparty.Delegation, error)
	// Issuers makes what believes assertions, for an issuer of ours.
	Issuers func(issuer string) (*trust.Issuers, error)
	// Clients are those of the configuration.
	Clients func() ([]storage.Client, error)
	// Own are the resources of the server itself, in no list.
	Own []storage.Resource
	// Two are the names of the operations that need two administrators, and Ring makes what seals their
	// inputs while they wait.
	Two  []string
	Ring func() (*secrets.Ring, error)
	// FreshFor is for how long a proof counts before what cannot be undone.
	FreshFor time.Duration
	Now      func() time.Time
	Version  string // of the program
	Replica  string // the id of the server that carries them out; "": a command does

	mailCheck mailCheck
}

// toTheEnd reads a list of the store to its end.
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
