package storage

import "context"

type asideKey struct{}

// Aside marks ctx as a query of an administrator. A store limits the connections of such queries.
// They wait for each other and leave connections for sign-ins.
func Aside(ctx context.Context) context.Context { return context.WithValue(ctx, asideKey{}, true) }

// IsAside reports whether Aside has marked the context.
func IsAside(ctx context.Context) bool { return ctx.Value(asideKey{}) == true }

// ForEveryone removes the mark of Aside, for a read whose result other requests also wait for.
func ForEveryone(ctx context.Context) context.Context {
	return context.WithValue(ctx, asideKey{}, false)
}
