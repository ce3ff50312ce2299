package storage

import (
	"context"
	"strings"
)

// Searches finds accounts and clients by part of their name. The returned next is the After of the
// search that continues. It is "" if no records are left, and also if Limit was reached: then
// continue after the last record found.
type Searches interface {
	// SearchUsers returns accounts after q.After, by name, whose name, mail address or id contains
	// the text.
	SearchUsers(ctx context.Context, q Search) (found []User, next string, err error)
	// SearchClients returns clients after q.After, by id, whose name or id contains the text.
	SearchClients(ctx context.Context, q Search) (found []Client, next string, err error)
}

// Search is a query. Every character of Text is literal. It ignores case: of all letters in the
// names of accounts, and of ASCII letters in everything else, in every database.
type Search struct {
	Text  string // "": everything matches
	After string
	Limit int // the maximum number of results
	// Scan is the maximum number of accounts or clients that are examined.
	Scan int
}

// Fold returns text as a search compares it, with ASCII letters in lower case.
func Fold(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}
