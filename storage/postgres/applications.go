package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/internal/column"
)

const (
	// knownClients are the client $3, and those that registered themselves of which the person $1 has granted
	// or allowed something at the resource $2.
	knownClients = "SELECT " + column.ApplicationRead + ` FROM clients WHERE deleted_at IS NULL AND (id = $3 OR source IN ` +
		column.SelfRegisteredSources + ` AND id IN
	(SELECT client_id FROM grants WHERE user_id = $1 AND hashtext(user_id) = hashtext($1) AND resource = $2
	UNION SELECT client_id FROM consents WHERE user_id = $1 AND resource = $2))`

	// ofApplication are the grants of a person, $4, at a resource, $5, of the clients of an application, $6.
	ofApplication = "user_id = $4 AND hashtext(user_id) = hashtext($4) AND resource = $5 AND client_id = ANY($6)"
)

// application is that of a client, with all of its clients that the person knows at a resource.
func application(
	ctx context.Context, q querier, userID, resource, clientID string,
) (column.Application, error) {
	known, err := knownOf(ctx, q, userID, resource, clientID)
	return column.ApplicationOf(clientID, known), err
}

// knownOf returns a client, and the self-registered ones that a person knows at a resource.
func knownOf(ctx context.Context, q querier, userID, resource, clientID string) ([]storage.Client, error) {
	return each(ctx, q, func(row pgx.CollectableRow) (storage.Client, error) {
		var r column.ApplicationRow
		if err := row.Scan(r.Dest()...); err != nil {
			return storage.Client{}, err
		}
		return r.Client()
	}, knownClients, userID, resource, clientID)
}

// forgetApplication forgets what a person has consented to for an application. It goes before what ends
// grants and codes: an approval that rests on a consent holds it until its grant is there to be found.
func forgetApplication(userID, resource string, app column.Application) statement {
	return statement{"DELETE FROM consents WHERE user_id = $1 AND resource = $2 AND client_id = ANY($3)",
		[]any{userID, resource, app.Clients}}
}

// expireCodes has the codes of an application that were not redeemed expire.
func expireCodes(userID, resource string, app column.Application, now time.Time) statement {
	return statement{`UPDATE grants SET code_expires_at = $1
		WHERE user_id = $2 AND hashtext(user_id) = hashtext($2) AND resource = $3
		AND client_id = ANY($4) AND code_used_at IS NULL AND code_expires_at > $1::bigint`,
		[]any{column.Millis(now), userID, resource, app.Clients}}
}
