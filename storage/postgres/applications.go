package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/internal/column"
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
)

// application returns a client's application, with all of its clients that the user knows at a
// resource.
func application(
	ctx context.Context, q querier, userID, resource, clientID string,
) (column.Application, error) {
	known, err := knownOf(ctx, q, userID, resource, clientID)
	return column.ApplicationOf(clientID, known), err
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
