package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// childPath turns the test binary into the victim of TestKilledLosesNothingAcknowledged.
const childPath = "MCP_AUTHD_SQLITE_VICTIM"

func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		victim(path)
	}
	if path := os.Getenv(usedPath); path != "" {
		occupy(path, os.Getenv(usedAs))
	}
	os.Exit(m.Run())
}

// victim spends identifiers from many goroutines until it is killed. It prints each one once the
// store has acknowledged it.
func victim(path string) {
	s, err := Open(context.Background(), path, Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for range 16 {
		go func() {
			for {
				id := secrets.ID("")
				if err := s.Spend(context.Background(), "kill", id, time.Now().Add(time.Hour)); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				os.Stdout.WriteString(id + "\n")
			}
		}()
	}
	select {}
}

func TestKilledLosesNothingAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	for round := range 3 {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), childPath+"="+path)
		c.Stderr = os.Stderr
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ids := readUntilKilled(c, bufio.NewReader(out), 200*(round+1))
		c.Wait() // it was killed
		if len(ids) == 0 {
			t.Fatal("the child acknowledged nothing")
		}
		s := open(t, path)
		for _, id := range ids {
			if err := s.Spend(context.Background(), "kill", id, time.Now().Add(time.Hour)); err == nil {
				t.Errorf("round %d: %s was acknowledged and is lost", round, id)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// readUntilKilled kills the child after n identifiers and returns all that it printed.
func readUntilKilled(c *exec.Cmd, out *bufio.Reader, n int) (ids []string) {
	for {
		line, err := out.ReadString('\n')
		if err != nil { // an incomplete line is not an acknowledgement
			return ids
		}
		if ids = append(ids, strings.TrimSuffix(line, "\n")); len(ids) == n {
			c.Process.Kill()
		}
	}
}

func TestEverythingIsThereAfterReopening(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "db")
	now := time.Now()
	s := open(t, path)
	if err := s.CreateUser(ctx, storage.User{ID: "usr_1", Name: "anna", CreatedAt: now}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	defer s.Close()
	if _, err := s.UserByName(ctx, "anna"); err != nil {
		t.Error(err)
	}
}

func TestOnlyTheOwnerReadsTheFiles(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "db"))
	defer s.Close()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 2 {
		t.Errorf("got %d files, want the database and its journal", len(files))
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s: got mode %o, want 600", f.Name(), mode)
		}
	}
}

func TestAnUnusualPathIsOpenedAsItIs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a b?c#d%20e&f")
	s := open(t, path)
	defer s.Close()
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestEveryWriteWaitsForTheDisk(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "db"))
	defer s.Close()
	err := s.write(context.Background(), "test", func(c *conn) error {
		for pragma, want := range map[string]string{
			"synchronous": "2", "journal_mode": "wal", "foreign_keys": "1", "busy_timeout": "5000",
		} {
			var got string
			if err := c.one([]any{&got}, "PRAGMA "+pragma); err != nil {
				return err
			}
			if got != want {
				t.Errorf("%s: got %s, want %s", pragma, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
