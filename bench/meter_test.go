//go:build unix

package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// meter reports the cost of operations other than time. It measures PostgreSQL where its processes
// are visible, on Linux.
type meter struct {
	b      *testing.B
	url    string // of PostgreSQL; "" for SQLite
	before reading
}

// reading is the total consumption at a moment.
type reading struct {
	own, postgres time.Duration // of CPU
	wal           int64
	updated, hot  int64
}

func newMeter(b *testing.B, e grownStore) *meter {
	m := &meter{b: b}
	if e.postgres {
		m.url = e.name
	}
	return m
}

func (m *meter) start() { m.before = m.read() }

// report reports the consumption since start, per operation.
func (m *meter) report(b *testing.B) {
	after, n := m.read(), float64(b.N)
	b.ReportMetric(float64((after.own-m.before.own).Microseconds())/n, "µs-CPU/op")
	if m.url == "" {
		return
	}
	b.ReportMetric(float64((after.postgres-m.before.postgres).Microseconds())/n, "µs-DB-CPU/op")
	b.ReportMetric(float64(after.wal-m.before.wal)/n, "WAL-B/op")
	if updated := after.updated - m.before.updated; updated > 0 {
		b.ReportMetric(float64(after.hot-m.before.hot)/float64(updated), "HOT")
	}
}

const updates = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'grants'"

func (m *meter) read() (r reading) {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		m.b.Fatal(err)
	}
	r.own = time.Duration(own.Utime.Nano() + own.Stime.Nano())
	if m.url == "" {
		return r
	}
	time.Sleep(1500 * time.Millisecond) // until the processes have updated the statistics
	r.wal = walBytes(m.b, m.url)
	queryPostgres(m.b, m.url, updates, func(rows pgx.Rows) error { return rows.Scan(&r.updated, &r.hot) })
	queryPostgres(m.b, m.url, "SELECT pid FROM pg_stat_activity", func(rows pgx.Rows) error {
		var pid int
		err := rows.Scan(&pid)
		r.postgres += cpuOf(pid)
		return err
	})
	return r
}

// cpuOf returns the CPU time of a process, in steps of 10 ms, or 0 if it is not visible.
func cpuOf(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	var ticks int
	for _, field := range fields[11:13] { // utime and stime, proc(5)
		n, _ := strconv.Atoi(field)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
