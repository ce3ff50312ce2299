package postgres_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/postgres"
)

// BenchmarkShared measures the cost of sharing for a request: sequentially, and by eight concurrent
// callers with separate allowances, sessions and proofs.
func BenchmarkShared(b *testing.B) {
	ctx := context.Background()
	db, err := sql.Open("pgx", pgtest.Start(b).Database(b))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxIdleConns(8)
	db.SetMaxOpenConns(8)
	shared, err := postgres.New(ctx, db, resource)
	if err != nil {
		b.Fatal(err)
	}
	limiter, err := mcpresource.NewLimiter(mcpresource.Limits{
		Calls: mcpresource.Rate{PerSecond: 1e6, Burst: 1e6},
	}, shared, nil)
	if err != nil {
		b.Fatal(err)
	}
	tasks, err := shared.Tasks(nil, taskKey)
	if err != nil {
		b.Fatal(err)
	}
	sessions, op := shared.Sessions(), mcpresource.Operation{Method: "tools/call", Name: "x"}
	for _, one := range []struct {
		name string
		do   func(caller string) error
	}{
		{"limiter", func(caller string) error {
			if _, ok := limiter.Allow(ctx, &mcpresource.Principal{Issuer: "i", Subject: caller}, op); !ok {
				return fmt.Errorf("a call was refused")
			}
			return nil
		}},
		{"proof", func(string) error {
			_, err := shared.Use(ctx, rand.Text(), time.Now().Add(time.Minute))
			return err
		}},
		{"session", func(caller string) error {
			_, ok, err := sessions.Owner(ctx, caller)
			if err == nil && !ok {
				err = fmt.Errorf("the session is not known")
			}
			return err
		}},
		{"task", func(caller string) error {
			now := time.Now()
			id := rand.Text()
			err := tasks.CreateTask(ctx, mcpresource.Task{
				ID: id, Owner: caller, Person: id, Created: now, Expires: now.Add(time.Minute), State: []byte(`{}`),
			}, 1)
			if err == nil {
				_, err = tasks.Task(ctx, caller, id)
			}
			return err
		}},
	} {
		for i := range 8 {
			caller := fmt.Sprint("caller", i)
			if err := sessions.Open(ctx, caller, mcpresource.Binding{Person: caller}); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(one.name, func(b *testing.B) {
			for b.Loop() {
				if err := one.do("caller0"); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(one.name+"-8", func(b *testing.B) {
			next := make(chan string, 8)
			for i := range 8 {
				next <- fmt.Sprint("caller", i)
			}
			b.SetParallelism(4) // times two processors
			b.RunParallel(func(pb *testing.PB) {
				caller := <-next
				defer func() { next <- caller }()
				for pb.Next() {
					if err := one.do(caller); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
