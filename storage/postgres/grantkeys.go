package postgres

// The short keys by which the indexes of grants find those of a person or of a client: hashes
// of their ids, beside which a condition compares the ids in full. parameter stands for the id.

func userKey(parameter string) string { return "hashtext(user_id) = hashtext(" + parameter + ")" }

func clientKey(parameter string) string { return "hashtext(client_id) = hashtext(" + parameter + ")" }

// leanGrants is the condition that the index of all codes is gone: a code that names no grant
// would be looked for in every row, and has expired.
const leanGrants = "EXISTS (SELECT 1 FROM schema_version WHERE name = 'lean_grants')"
