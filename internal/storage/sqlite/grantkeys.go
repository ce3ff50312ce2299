package sqlite

// Short keys of the indexes on grants, which find the grants of a user or a client. They are the
// parts of the ids that differ; a condition also compares the full ids. parameter is the id's
// placeholder.

func userKey(parameter string) string { return "substr(user_id, -8) = substr(" + parameter + ", -8)" }

func clientKey(parameter string) string {
	return "substr(client_id, 9, 4) || substr(client_id, -8) = substr(" + parameter + ", 9, 4) || substr(" +
		parameter + ", -8)"
}
