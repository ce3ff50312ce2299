package sqlite

// The short keys by which the indexes of grants find those of a person or of a client: parts
// of their ids that differ, beside which a condition compares the ids in full. parameter
// stands for the id.

func userKey(parameter string) string { return "substr(user_id, -8) = substr(" + parameter + ", -8)" }

func clientKey(parameter string) string {
	return "substr(client_id, 9, 4) || substr(client_id, -8) = substr(" + parameter + ", 9, 4) || substr(" +
		parameter + ", -8)"
}
