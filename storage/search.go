package storage

import (
	"context"
	"strings"
)

// Searches find accounts and clients by a part of what names them. What is returned as next is the After of a
// search that goes on behind what was looked at. It is "" when there is nothing behind, and also when Limit was
// reached: then the search goes on behind the last one that was found.
type Searches interface {
	// SearchUsers returns accounts with a name greater than that of the query, by name, whose name, mail
	// address or id has the text.
	SearchUsers(ctx context.Context, q Search) (found []User, next string, err error)
	// SearchClients returns clients with an id greater than that of the query, by id, whose name or id has
	// the text.
	SearchClients(ctx context.Context, q Search) (found []Client, next string, err error)
}

// Search is what is looked for. Every character of Text stands for itself. Case does not count: of all
// letters in the names of accounts, and of ASCII letters in everything else, in every database alike.
type Search struct {
	Text  string // "": everything fits
	After string
	Limit int // how many are returned at most
	// Scan is how many accounts or clients are looked at, at most.
	Scan int
}

// Fold is a text as a search compares it, where only the case of ASCII letters does not count.
func Fold(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}
