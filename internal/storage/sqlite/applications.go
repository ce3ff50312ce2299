package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
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

	// ofPerson are the grants of a person, ?4, to clients, ?5.
	ofPerson = "user_id = ?4 AND substr(user_id, -8) = substr(?4, -8) AND client_id IN (SELECT value FROM json_each(?5))"

	// clientsOfPerson are the clients that a person, ?1, has granted, allowed or paused something, and the client ?2.
	clientsOfPerson = `SELECT client_id FROM grants WHERE user_id = ?1 AND substr(user_id, -8) = substr(?1, -8)
UNION SELECT client_id FROM consents WHERE user_id = ?1 UNION SELECT client_id FROM pauses WHERE user_id = ?1 UNION SELECT ?2`
)

// application returns a client's application, with all of its clients that the user knows at a
// resource.
func application(c *conn, userID, resource, clientID string) (column.Application, error) {
	known, err := knownOf(c, userID, resource, clientID)
	return column.ApplicationOf(clientID, known), err
}

// familyOf returns the application of a grant, and those that are merged with it.
func familyOf(c *conn, g storage.Grant) ([]column.Application, error) {
	known, err := knownOf(c, g.UserID, g.Resource, g.ClientID)
	if err != nil {
		return nil, err
	}
	return family(c, column.ApplicationOf(g.ClientID, known), known)
}

// family returns an application and those that are merged with it.
func family(c *conn, app column.Application, known []storage.Client) ([]column.Application, error) {
	others, err := each(c, func(row scanner) (key string, err error) {
		err = row.Scan(&key)
		return key, err
	}, `SELECT counts_as FROM application_aliases WHERE application = ?1 UNION SELECT application FROM application_aliases
		WHERE counts_as IN (SELECT ?1 UNION SELECT counts_as FROM application_aliases WHERE application = ?1)`, app.Key)
	return column.Family(app, others, known), err
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

// ApplicationKeys implements storage.Applications.
func (s *Store) ApplicationKeys(ctx context.Context, clientIDs []string) (out map[string]string, err error) {
	err = s.read(ctx, "ApplicationKeys", func(c *conn) error {
		out, err = applicationKeys(c, clientIDs)
		return err
	})
	return out, err
}

func applicationKeys(c *conn, clientIDs []string) (map[string]string, error) {
	filed, err := each(c, func(row scanner) (column.FiledKey, error) {
		var r column.FiledKeyRow
		if err := row.Scan(r.Dest()...); err != nil {
			return column.FiledKey{}, err
		}
		return r.FiledKey()
	}, "SELECT "+column.FiledKeyRead+" FROM clients WHERE id IN (SELECT value FROM json_each(?))", column.List(clientIDs))
	if err != nil {
		return nil, err
	}
	merged, err := each(c, func(row scanner) (m column.CountsAs, err error) {
		err = row.Scan(&m.Key, &m.As)
		return m, err
	}, "SELECT application, counts_as FROM application_aliases WHERE application IN (SELECT value FROM json_each(?))",
		column.List(column.KeysOf(clientIDs, filed)))
	return column.ApplicationKeys(clientIDs, filed, merged), err
}

// WithdrawApplication implements storage.Revocations.
func (s *Store) WithdrawApplication(
	ctx context.Context, grantID string, by storage.RevokedBy, now time.Time,
) (ended int, err error) {
	err = s.write(ctx, "WithdrawApplication", func(c *conn) error {
		var userID, clientID string
		err := c.one([]any{&userID, &clientID}, "SELECT user_id, client_id FROM grants WHERE id = ?", grantID)
		switch {
		case err != nil:
			return ignore(err, storage.ErrNotFound)
		case userID == "":
			return revoke(c, by, "id = ?4", now, grantID)()
		}
		known, err := each(c, func(row scanner) (id string, err error) {
			err = row.Scan(&id)
			return id, err
		}, clientsOfPerson, userID, clientID)
		if err != nil {
			return err
		}
		keys, err := applicationKeys(c, known)
		if err != nil {
			return err
		}
		key := keys[clientID]
		clients := column.List(column.SameKey(keys, key))
		err = c.one([]any{&ended}, "SELECT count(*) FROM grants g WHERE "+connected+` AND substr(user_id, -8) = substr(?1, -8)
			AND client_id IN (SELECT value FROM json_each(?3))`, userID, column.Millis(now), clients)
		if err != nil {
			return err
		}
		return all(
			run(c, `DELETE FROM pauses WHERE user_id = ?1 AND (application = ?2 OR client_id IN (SELECT value FROM json_each(?3))
				OR application IN (SELECT application FROM application_aliases WHERE counts_as = ?2))`, userID, key, clients),
			run(c, "DELETE FROM consents WHERE user_id = ?1 AND client_id IN (SELECT value FROM json_each(?2))", userID, clients),
			revoke(c, by, ofPerson, now, userID, clients),
		)
	})
	return ended, err
}
