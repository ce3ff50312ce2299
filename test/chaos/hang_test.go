package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
)

// TestHangLongerThanTheGrace (operations M1): PostgreSQL hangs for longer than the grace while
// every client refreshes, and then executes the pending requests. All clients can continue.
func TestHangLongerThanTheGrace(t *testing.T) {
	lane.Long(t, "internal/storage/postgres tests a database that hangs")
	grace, hang := 10*time.Second, 13*time.Second
	if os.Getenv("MCP_AUTHD_CHAOS") == "long" {
		grace, hang = 20*time.Second, 35*time.Second
	}
	x := newCluster(t, grace, (*cluster).startNodes)
	if err := x.command(password, "user", "add", "person", "--password-stdin"); err != nil {
		t.Fatal(err)
	}
	x.start()
	p := &person{Person: demotest.NewPerson("person", password)}
	var clients []*client
	for i := range 24 {
		c := &client{cluster: x, person: p, rand: rand.New(rand.NewPCG(1, uint64(i)))}
		err := c.register()
		if err == nil {
			err = c.signIn()
		}
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	each := func(do func(*client) error) error {
		var wg sync.WaitGroup
		errs := make([]error, len(clients))
		for i, c := range clients {
			wg.Go(func() { errs[i] = do(c) })
		}
		wg.Wait()
		for i, err := range errs {
			if err != nil {
				return fmt.Errorf("client %d: %w", i, err)
			}
		}
		return nil
	}
	// Every connection has prepared the statement.
	for range 3 {
		if err := each((*client).turn); err != nil {
			t.Fatal(err)
		}
	}
	x.leave()
	began := time.Now()
	defer x.primary().Resume()
	if err := x.primary().Pause(); err != nil {
		t.Fatal(err)
	}
	_ = each(func(c *client) error {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // clients do not wait longer
		defer cancel()
		_, _, err := c.attempt(ctx, c.rotation(c.refresh), c.replicas[c.rand.IntN(len(c.replicas))])
		return err
	})
	pause(time.Until(began.Add(hang)))
	if err := x.primary().Resume(); err != nil {
		t.Fatal(err)
	}
	x.arrive()
	if err := each((*client).turn); err != nil {
		t.Error(err)
	}
}

// turn refreshes once.
func (c *client) turn() error {
	out, err := c.renew(c.refresh)
	if err == nil {
		c.keep(out)
	}
	return err
}
