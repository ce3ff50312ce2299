package auditlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// spooling returns a writer with a directory, and its log output.
func spooling(s auditlog.Store, dir string) (*auditlog.Writer, *logtest.Buffer) {
	var log logtest.Buffer
	return auditlog.NewWriter(auditlog.Options{
		Store: s, Dir: dir, Now: time.Now, Log: slog.New(slog.NewJSONHandler(&log, nil)), MAC: macOf(s),
	}), &log
}

func add(t *testing.T, w *auditlog.Writer, from, n int) {
	for i := range n {
		w.Add(t.Context(), audit.TokenIssued, []slog.Attr{slog.String("grant", fmt.Sprint("grt_", from+i))})
	}
}

func runFor(t *testing.T, w *auditlog.Writer, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { w.Run(ctx) })
	if !wait.Poll(wait.Bound, holds) {
		t.Error("the condition does not hold")
	}
	cancel()
	run.Wait()
}

// killed returns the file that a killed writer leaves after n events.
func killed(t *testing.T, n int) (name string, content []byte) {
	t.Helper()
	dir := t.TempDir()
	w, _ := spooling(nil, dir)
	add(t, w, 0, n)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	content, err = os.ReadFile(files[0])
	must(t, err)
	return filepath.Base(files[0]), content
}

func (db database) size(t *testing.T) int64 {
	t.Helper()
	head, err := db.AuditHead(t.Context(), "")
	must(t, err)
	return head.Size
}

func empty(t *testing.T, dir string) bool {
	t.Helper()
	all, err := os.ReadDir(dir)
	must(t, err)
	return len(all) == 0
}

// TestKilled: OB-04. Acknowledged entries of a killed server reach the log at the next start, once.
func TestKilled(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		before := int64(0)
		for _, c := range []struct {
			name   string
			change func(lines []byte) []byte
			want   int64
			says   string
		}{
			{"as it was", func(b []byte) []byte { return b }, 50, `"entries":50`},
			{"killed in the last line", func(b []byte) []byte { return b[:len(b)-20] }, 49, `"entries":49`},
			{
				"a line that is damaged", func(b []byte) []byte {
					return bytes.Replace(b, []byte("grt_7"), []byte("grt_8"), 1)
				}, 49, `"lines":1`,
			},
			{
				"a line that is there twice", func(b []byte) []byte {
					first, _, _ := bytes.Cut(b, []byte("\n"))
					return append(b, append(first, '\n')...)
				}, 50, `"lines":1`,
			},
			{"nothing in it", func([]byte) []byte { return nil }, 0, ""},
		} {
			t.Run(c.name, func(t *testing.T) {
				dir := t.TempDir()
				name, content := killed(t, 50)
				must(t, os.WriteFile(filepath.Join(dir, name), c.change(content), 0o600))
				w, log := spooling(db, dir)
				runFor(t, w, func() bool { return empty(t, dir) })
				if got := db.size(t) - before; got != c.want || !strings.Contains(log.String(), c.says) {
					t.Errorf("got %d entries, want %d; the log says %s", got, c.want, log.String())
				}
				// The file appears again, as if restored from a backup. Its entries are in the log
				// already.
				must(t, os.WriteFile(filepath.Join(dir, name), content[:max(0, len(content)-40)], 0o600))
				again, _ := spooling(db, dir)
				runFor(t, again, func() bool { return empty(t, dir) })
				before += c.want
				if c.want > 0 && db.size(t) != before {
					t.Errorf("taken again: got %d entries, want %d", db.size(t), before)
				}
				before = db.size(t)
			})
		}
		sign := signer(t, db)
		checkpoint(t, sign)
		report, err := auditlog.Verify(t.Context(), db, keyOf(sign))
		if err != nil || report.Entries != before {
			t.Errorf("got %+v, %v", report, err)
		}
	})
}

// TestKilledReplicas: OB-04. Replicas that share a directory take each leftover file once, and
// never the file of a running one.
func TestKilledReplicas(t *testing.T) {
	db, dir := onPostgres(t), t.TempDir()
	for range 3 {
		name, content := killed(t, 200)
		must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	var replicas sync.WaitGroup
	for range 8 {
		replicas.Go(func() {
			w, _ := spooling(db, dir)
			add(t, w, 0, 10)
			runFor(t, w, func() bool {
				left, _ := w.State()
				return left == 0 && db.size(t) == 3*200+8*10
			})
		})
	}
	replicas.Wait()
	if !empty(t, dir) {
		t.Error("files are left")
	}
}

// TestForeignSpool: files that others may have written are rejected with a log message.
func TestForeignSpool(t *testing.T) {
	for name, put := range map[string]func(path string, content []byte) error{
		"that others may write": func(path string, content []byte) error {
			return errors.Join(os.WriteFile(path, content, 0o600), os.Chmod(path, 0o666))
		},
		"that is a link": func(path string, content []byte) error {
			elsewhere := filepath.Join(filepath.Dir(filepath.Dir(path)), "elsewhere")
			if err := os.WriteFile(elsewhere, content, 0o600); err != nil {
				return err
			}
			return os.Symlink(elsewhere, path)
		},
		"that is older than the store remembers": func(path string, content []byte) error {
			past := time.Now().Add(-400 * 24 * time.Hour)
			return errors.Join(os.WriteFile(path, content, 0o600), os.Chtimes(path, past, past))
		},
	} {
		t.Run("OB-04 a file "+name, func(t *testing.T) {
			db, dir := onSQLite(t), filepath.Join(t.TempDir(), "audit")
			must(t, os.Mkdir(dir, 0o700))
			file, content := killed(t, 5)
			path := filepath.Join(dir, file)
			must(t, put(path, content))
			w, log := spooling(db, dir)
			runFor(t, w, func() bool { return strings.Contains(log.String(), "are not taken") })
			if _, err := os.Lstat(path); err != nil || db.size(t) != 0 {
				t.Errorf("got %d entries, %v", db.size(t), err)
			}
		})
	}
}

// TestLastNumber: a file that contains the highest number is processed once, not again and again.
func TestLastNumber(t *testing.T) {
	db, dir := onSQLite(t), t.TempDir()
	file, content := killed(t, 1)
	leaf := content[bytes.IndexByte(content, '{') : len(content)-1]
	for _, number := range []string{"9223372036854775807 ", "-1 "} {
		castagnoli := crc32.MakeTable(crc32.Castagnoli)
		sum := crc32.Checksum(append([]byte(number), leaf...), castagnoli)
		content = append(content, fmt.Sprintf("%s%08x %s\n", number, sum, leaf)...)
	}
	must(t, os.WriteFile(filepath.Join(dir, file), content, 0o600))
	w, log := spooling(db, dir)
	runFor(t, w, func() bool { return strings.Contains(log.String(), "they are lost") && db.size(t) > 0 })
	if got := db.size(t); got != 1 || !strings.Contains(log.String(), `"lines":2`) {
		t.Errorf("OB-04: got %d entries, want 1: %s", got, log.String())
	}
}

// TestSpoolStaysSmall: the file shrinks after entries reach the log, even if others always wait.
func TestSpoolStaysSmall(t *testing.T) {
	db, dir := onSQLite(t), t.TempDir()
	w, _ := spooling(db, dir)
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { w.Run(ctx) })
	largest := int64(0)
	for i := range 400 {
		for range 100 {
			w.Add(ctx, audit.TokenIssued, []slog.Attr{slog.String("scope", strings.Repeat("s", 500))})
		}
		wait.Until(t, "the log has taken entries", func() bool { left, _ := w.State(); return left < 8000 })
		if i%20 == 0 {
			files, _ := filepath.Glob(filepath.Join(dir, "awr_*"))
			for _, f := range files {
				if info, err := os.Stat(f); err == nil {
					largest = max(largest, info.Size())
				}
			}
		}
	}
	cancel()
	run.Wait()
	if got := db.size(t); got != 40_000 || largest > 16<<20 || largest == 0 || !empty(t, dir) {
		t.Errorf("got %d entries, and a file of %d bytes", got, largest)
	}
}

// TestStoreIsAwayAtTheEnd: entries that the store refuses during shutdown reach the log at the next
// start.
func TestStoreIsAwayAtTheEnd(t *testing.T) {
	db, dir := onSQLite(t), t.TempDir()
	w, log := spooling(&away{Store: db.Store}, dir)
	add(t, w, 0, 20)
	runFor(t, w, func() bool { return true })
	if !strings.Contains(log.String(), "wait in a file for the next start") {
		t.Errorf("got %s", log.String())
	}
	next, _ := spooling(db, dir)
	runFor(t, next, func() bool { return db.size(t) == 20 })
	if !empty(t, dir) {
		t.Error("the file is left")
	}
}

// away is a store that cannot append.
type away struct{ auditlog.Store }

func (*away) AppendAudit(
	context.Context, string, int64, func(storage.AuditEnd) (storage.AuditAppend, error),
) error {
	return errors.New("away")
}

// TestStorePutBack: a restored store has fewer entries of a running writer than it appended. The
// writer and its file continue.
func TestStorePutBack(t *testing.T) {
	db, dir := onSQLite(t), t.TempDir()
	w, _ := spooling(db, dir)
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { w.Run(ctx) })
	add(t, w, 0, 10)
	wait.Until(t, "the log has 10 entries", func() bool { return db.size(t) == 10 })
	db.exec(t, "DELETE FROM audit_entries; DELETE FROM audit_head; DELETE FROM audit_tiles; DELETE FROM audit_writers")
	add(t, w, 10, 10)
	wait.Until(t, "the log has 10 entries again", func() bool { return db.size(t) == 10 })
	cancel()
	run.Wait()
	if left, lost := w.State(); left != 0 || lost != 0 || !empty(t, dir) {
		t.Errorf("%d wait, %d are lost", left, lost)
	}
	_, err := auditlog.Verify(t.Context(), db, keyOf(signer(t, db)))
	must(t, err)
}

// TestFullDisk: OB-04. On a full disk, entries wait in memory, a message is logged, and the file
// has only whole lines. The test runs itself again in a small file system, if it can mount one.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv("MCP_AUTHD_FULL_DISK"); dir != "" {
		fullDisk(t, dir)
		return
	}
	self, err := os.Executable()
	must(t, err)
	const script = `mount -t tmpfs -o size=64k none "$MCP_AUTHD_FULL_DISK" || exit 77
exec "$0" -test.run='^TestFullDisk$' -test.v`
	cmd := exec.CommandContext(t.Context(), "unshare", "-rm", "sh", "-c", script, self)
	cmd.Env = append(os.Environ(), "MCP_AUTHD_FULL_DISK="+t.TempDir())
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == 77 ||
		strings.Contains(string(out), "unshare failed"):
		t.Skipf("no small file system can be mounted here: %v %s", err, out)
	case err != nil || !strings.Contains(string(out), "--- PASS: TestFullDisk"):
		t.Errorf("%v\n%s", err, out)
	}
}

func fullDisk(t *testing.T, dir string) {
	store := installation.Store(t)
	w, log := spooling(store, dir)
	add(t, w, 0, 1000)
	if !strings.Contains(log.String(), "wait in memory alone") {
		t.Errorf("the log says %s", log.String())
	}
	files, err := filepath.Glob(filepath.Join(dir, "awr_*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	content, err := os.ReadFile(files[0])
	must(t, err)
	if len(content) < 30_000 || !bytes.HasSuffix(content, []byte("}}\n")) {
		t.Errorf("%d bytes, which end in %q", len(content), content[max(0, len(content)-20):])
	}
	runFor(t, w, func() bool {
		head, err := store.AuditHead(t.Context(), "")
		return err == nil && head.Size == 1000
	})
	if !empty(t, dir) {
		t.Error("the file is left")
	}
}
