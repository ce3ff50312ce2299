package storage

import "context"

// Locales stores the language that a user chose.
type Locales interface {
	// SetLocale replaces the language that a user chose. It returns ErrNotFound for an unknown
	// user.
	SetLocale(ctx context.Context, userID, tag string) error
}
