package storage

import "context"

type asideKey struct{}

// Aside marks ctx as a question of an operator. A store limits the connections that such questions use, so that they
// wait for each other and leave connections for sign-ins.
func Aside(ctx context.Context) context.Context { return context.WithValue(ctx, asideKey{}, true) }

// IsAside reports whether Aside has marked the context.
func IsAside(ctx context.Context) bool { return ctx.Value(asideKey{}) == true }

// ForEveryone removes the mark of Aside from a read whose result requests of others wait for.
func ForEveryone(ctx context.Context) context.Context {
	return context.WithValue(ctx, asideKey{}, false)
}
