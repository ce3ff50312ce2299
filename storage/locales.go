package storage

import "context"

// Locales keeps the language that a person chose.
type Locales interface {
	// SetLocale replaces the language that a person chose. ErrNotFound when there is no such user.
	SetLocale(ctx context.Context, userID, tag string) error
}
