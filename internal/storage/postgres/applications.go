package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	// knownClients selects the client $3, and the self-registered clients that the user $1 has
	// granted access to, or consented to, at the resource $2.
	knownClients = "SELECT " + column.ApplicationRead + ` FROM clients WHERE deleted_at IS NULL AND (id = $3 OR source IN ` +
		column.SelfRegisteredSources + ` AND id IN
	(SELECT client_id FROM grants WHERE user_id = $1 AND hashtext(user_id) = hashtext($1) AND resource = $2
	UNION SELECT client_id FROM consents WHERE user_id = $1 AND resource = $2))`

	// ofApplication is the condition for grants of a user, $4, at a resource, $5, to the clients $6
	// of an application.
	ofApplication = "user_id = $4 AND hashtext(user_id) = hashtext($4) AND resource = $5 AND client_id = ANY($6)"

	// ofPerson are the grants of a person, $4, to clients, $5.
	ofPerson = "user_id = $4 AND hashtext(user_id) = hashtext($4) AND client_id = ANY($5)"

	// clientsOfPerson are the clients that a person, $1, has granted, allowed or paused something, and the client $2.
	clientsOfPerson = `SELECT client_id FROM grants WHERE user_id = $1 AND hashtext(user_id) = hashtext($1)
UNION SELECT client_id FROM consents WHERE user_id = $1
UNION SELECT client_id FROM pauses WHERE user_id = $1 AND paused_at IS NOT NULL UNION SELECT $2`
)

// application returns a client's application, with all of its clients that the user knows at a
// resource.
func application(
	ctx context.Context, q querier, userID, resource, clientID string,
) (column.Application, error) {
	known, err := knownOf(ctx, q, userID, resource, clientID)
	return column.ApplicationOf(clientID, known), err
}

// familyOf returns the application of a grant, and those that are merged with it.
func familyOf(ctx context.Context, q querier, g storage.Grant) ([]column.Application, error) {
	known, err := knownOf(ctx, q, g.UserID, g.Resource, g.ClientID)
	if err != nil {
		return nil, err
	}
	return family(ctx, q, column.ApplicationOf(g.ClientID, known), known)
}

// family returns an application and those that are merged with it.
func family(
	ctx context.Context, q querier, app column.Application, known []storage.Client,
) ([]column.Application, error) {
	others, err := each(ctx, q, pgx.RowTo[string], `SELECT counts_as FROM application_aliases WHERE application = $1
		UNION SELECT application FROM application_aliases
		WHERE counts_as IN (SELECT $1 UNION SELECT counts_as FROM application_aliases WHERE application = $1)`, app.Key)
	return column.Family(app, others, known), err
}

// The row that makes merges wait for pauses of people, and pauses for merges.
const (
	putMerges   = "INSERT INTO settings (name, value) VALUES ('merges', '') ON CONFLICT (name) DO NOTHING"
	shareMerges = "SELECT name FROM settings WHERE name = 'merges' FOR SHARE"
	holdMerges  = "SELECT name FROM settings WHERE name = 'merges' FOR UPDATE"
)

// withoutMerges waits for a merge of applications. No other one begins until the transaction ends.
func withoutMerges(ctx context.Context, q querier) error {
	return all(ctx, q, statement{sql: putMerges}, statement{sql: shareMerges})
}

// beginMerge waits for pauses that begin or end. Later ones wait until the transaction ends, and see its result.
func beginMerge(ctx context.Context, q querier) error {
	return all(ctx, q, statement{sql: putMerges}, statement{sql: holdMerges})
}

// knownOf returns a client, and the self-registered ones that a user knows at a resource.
func knownOf(ctx context.Context, q querier, userID, resource, clientID string) ([]storage.Client, error) {
	return each(ctx, q, func(row pgx.CollectableRow) (storage.Client, error) {
		var r column.ApplicationRow
		if err := row.Scan(r.Dest()...); err != nil {
			return storage.Client{}, err
		}
		return r.Client()
	}, knownClients, userID, resource, clientID)
}

// forgetApplication forgets a user's consents to an application. It must run before grants and
// codes are ended: an approval that relies on a consent locks it until its grant is visible.
func forgetApplication(userID, resource string, app column.Application) statement {
	return statement{"DELETE FROM consents WHERE user_id = $1 AND resource = $2 AND client_id = ANY($3)",
		[]any{userID, resource, app.Clients}}
}

// expireCodes lets the unredeemed codes of an application expire.
func expireCodes(userID, resource string, app column.Application, now time.Time) statement {
	return statement{`UPDATE grants SET code_expires_at = $1
		WHERE user_id = $2 AND hashtext(user_id) = hashtext($2) AND resource = $3
		AND client_id = ANY($4) AND code_used_at IS NULL AND code_expires_at > $1::bigint`,
		[]any{column.Millis(now), userID, resource, app.Clients}}
}

// ApplicationKeys implements storage.Applications.
func (s *Store) ApplicationKeys(ctx context.Context, clientIDs []string) (out map[string]string, err error) {
	err = s.do(ctx, "ApplicationKeys", func(ctx context.Context, q querier) error {
		out, err = applicationKeys(ctx, q, clientIDs)
		return err
	})
	return out, err
}

func applicationKeys(ctx context.Context, q querier, clientIDs []string) (map[string]string, error) {
	filed, err := each(ctx, q, func(row pgx.CollectableRow) (column.FiledKey, error) {
		var r column.FiledKeyRow
		if err := row.Scan(r.Dest()...); err != nil {
			return column.FiledKey{}, err
		}
		return r.FiledKey()
	}, "SELECT "+column.FiledKeyRead+" FROM clients WHERE id = ANY($1)", clientIDs)
	if err != nil {
		return nil, err
	}
	merged, err := each(ctx, q, pgx.RowToStructByPos[column.CountsAs],
		"SELECT application, counts_as FROM application_aliases WHERE application = ANY($1)",
		column.KeysOf(clientIDs, filed))
	return column.ApplicationKeys(clientIDs, filed, merged), err
}

// WithdrawApplication implements storage.Revocations.
func (s *Store) WithdrawApplication(
	ctx context.Context, grantID string, by storage.RevokedBy, now time.Time,
) (ended int, err error) {
	err = s.txCommitted(ctx, "WithdrawApplication", func(ctx context.Context, q querier) error {
		var userID, clientID string
		err := one(ctx, q, []any{&userID, &clientID}, "SELECT user_id, client_id FROM grants WHERE id = $1", grantID)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return settle(ctx, q)
		case err != nil:
			return err
		case userID == "":
			return ensure(ctx, q, revoke(by, "id = $4", now, grantID))
		}
		known, err := each(ctx, q, pgx.RowTo[string], clientsOfPerson, userID, clientID)
		if err != nil {
			return err
		}
		keys, err := applicationKeys(ctx, q, known)
		if err != nil {
			return err
		}
		key := keys[clientID]
		clients := column.SameKey(keys, key)
		err = one(ctx, q, []any{&ended}, "SELECT count(*) FROM grants g WHERE "+connected+
			" AND hashtext(user_id) = hashtext($1) AND client_id = ANY($3)", userID, column.Millis(now), clients)
		if err != nil {
			return err
		}
		return ensure(ctx, q,
			statement{`DELETE FROM pauses WHERE user_id = $1 AND paused_at IS NOT NULL AND (application = $2 OR client_id = ANY($3)
				OR application IN (SELECT application FROM application_aliases WHERE counts_as = $2))`,
				[]any{userID, key, clients}},
			statement{"DELETE FROM consents WHERE user_id = $1 AND client_id = ANY($2)", []any{userID, clients}},
			revoke(by, ofPerson, now, userID, clients),
		)
	})
	return ended, err
}
