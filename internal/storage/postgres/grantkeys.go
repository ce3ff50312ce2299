package postgres

// Short keys of the indexes on grants, which find the grants of a user or a client. They are hashes
// of the ids; a condition also compares the full ids. parameter is the id's placeholder.

func userKey(parameter string) string { return "hashtext(user_id) = hashtext(" + parameter + ")" }

func clientKey(parameter string) string { return "hashtext(client_id) = hashtext(" + parameter + ")" }

// leanGrants is the condition that the index of all codes is gone. A code that names no grant has
// then expired, and a search for it would read every row.
const leanGrants = "EXISTS (SELECT 1 FROM schema_version WHERE name = 'lean_grants')"
