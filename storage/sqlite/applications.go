package sqlite

import (
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/internal/column"
)

const (
	// knownClients selects the client ?3, and the self-registered clients that the user ?1 has
	// granted access to, or consented to, at the resource ?2.
	knownClients = "SELECT " + column.ApplicationRead + ` FROM clients WHERE deleted_at IS NULL AND (id = ?3 OR source IN ` +
		column.SelfRegisteredSources + ` AND id IN
	(SELECT client_id FROM grants WHERE user_id = ?1 AND substr(user_id, -8) = substr(?1, -8) AND resource = ?2
	UNION SELECT client_id FROM consents WHERE user_id = ?1 AND resource = ?2))`

	// ofApplication is the condition for grants of a user, ?4, at a resource, ?5, to the clients ?6
	// of an application.
	ofApplication = "user_id = ?4 AND substr(user_id, -8) = substr(?4, -8) AND resource = ?5" +
		" AND client_id IN (SELECT value FROM json_each(?6))"
)

// application returns a client's application, with all of its clients that the user knows at a
// resource.
func application(c *conn, userID, resource, clientID string) (column.Application, error) {
	known, err := knownOf(c, userID, resource, clientID)
	return column.ApplicationOf(clientID, known), err
}

// knownOf returns a client, and the self-registered ones that a user knows at a resource.
func knownOf(c *conn, userID, resource, clientID string) ([]storage.Client, error) {
	return each(c, scanKnown, knownClients, userID, resource, clientID)
}

func scanKnown(row scanner) (storage.Client, error) {
	var r column.ApplicationRow
	if err := row.Scan(r.Dest()...); err != nil {
		return storage.Client{}, err
	}
	return r.Client()
}

// forgetApplication forgets a user's consents to an application.
func forgetApplication(c *conn, userID, resource string, app column.Application) func() error {
	return run(c, `DELETE FROM consents WHERE user_id = ? AND resource = ?
		AND client_id IN (SELECT value FROM json_each(?))`, userID, resource, column.List(app.Clients))
}

// expireCodes lets the unredeemed codes of an application expire.
func expireCodes(c *conn, userID, resource string, app column.Application, now time.Time) func() error {
	return run(c, `UPDATE grants SET code_expires_at = ?1
		WHERE user_id = ?2 AND substr(user_id, -8) = substr(?2, -8) AND resource = ?3
		AND client_id IN (SELECT value FROM json_each(?4)) AND code_used_at IS NULL AND code_expires_at > ?1`,
		column.Millis(now), userID, resource, column.List(app.Clients))
}
