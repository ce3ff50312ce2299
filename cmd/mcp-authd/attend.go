package main

import (
	"io"
	"os"
	"strconv"
	"strings"
)

// attendance is what the servers of one SQLite file know of each other: each locks one byte of
// a file beside the database. The kernel takes a lock away when its process ends, however
// it ends. Nobody waits for a lock, so commands and the start after a crash are never stopped.
type attendance struct{ file *os.File }

// servers is how many servers of one file can be told apart.
const servers = 16

func attendancePath(database string) string { return database + "-servers" }

// attend takes the lock of this server, and returns the other ones that run.
func attend(database string) (io.Closer, []int, error) {
	f, err := os.OpenFile(attendancePath(database), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, err
	}
	for slot := int64(0); slot < servers && !lockByte(f, slot); slot++ {
	}
	return f, attendance{f}.others(), nil
}

// attending returns the processes of the servers that run. It makes no file.
func attending(database string) ([]int, error) {
	f, err := os.Open(attendancePath(database))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return attendance{f}.others(), nil
}

// others returns the processes that hold a byte; this one is not among them.
func (a attendance) others() (pids []int) {
	for slot := range int64(servers) {
		if pid, held := holder(a.file, slot); held {
			pids = append(pids, pid)
		}
	}
	return pids
}

// processes names processes to people. Those of another container have no number here.
func processes(pids []int) string {
	var names []string
	for _, pid := range pids {
		name := "one of another container"
		if pid > 0 {
			name = strconv.Itoa(pid)
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// attend tells the other servers of a SQLite file of this one, and the operator of them. A
// second server is not refused: at a restart the old one may still be finishing.
func (a *app) attend() {
	if a.config.Postgres() {
		return
	}
	held, others, err := attend(a.config.SQLitePath())
	if err != nil {
		a.log.Warn("it cannot be told whether another server uses this database", "error", err)
		return
	}
	a.attendance = held
	if len(others) > 0 {
		a.log.Warn("another server uses this database, and SQLite is for one replica: stop one of them, or use PostgreSQL",
			"database", a.config.SQLitePath(), "process", processes(others))
	}
}

// alone tells of several servers with one SQLite file.
func (d *doctor) alone() {
	if d.app.config.Postgres() {
		return
	}
	pids, err := attending(d.app.config.SQLitePath())
	switch {
	case err != nil:
		d.skip("database", "which servers use it cannot be told: %s", err)
	case len(pids) > 1:
		d.fail("database", "SQLite is for one replica: stop all but one of them, or use PostgreSQL",
			"%d servers use %s (processes %s)", len(pids), d.app.config.SQLitePath(), processes(pids))
	}
}
