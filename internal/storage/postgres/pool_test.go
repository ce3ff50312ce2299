package postgres

import (
	"context"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// OP-06: other verbs proceed, however many administrators' queries run and wait.
func TestQuestionsAreReadAside(t *testing.T) {
	s := open(t, pgtest.Start(t).Database(t), Options{MaxConns: 4})
	defer s.Close()
	storagetest.Aside(t, 4, func(ctx context.Context, inside func()) error {
		return s.do(ctx, "read", func(context.Context, querier) error {
			inside()
			return nil
		})
	})
}

// OP-04: JIT is off. Compiling the statement of a status list took seconds, at each replica.
func TestNoJIT(t *testing.T) {
	s := open(t, pgtest.Start(t).Database(t), Options{})
	defer s.Close()
	var jit string
	err := s.do(t.Context(), "read", func(ctx context.Context, q querier) error {
		return one(ctx, q, []any{&jit}, "SHOW jit")
	})
	if err != nil || jit != "off" {
		t.Errorf("jit is %q, %v", jit, err)
	}
}
