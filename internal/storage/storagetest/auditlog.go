package storagetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// appended returns a function that builds a batch of n entries at the end of the log.
func (e *env) appended(n int) func(storage.AuditEnd) (storage.AuditAppend, error) {
	return func(end storage.AuditEnd) (storage.AuditAppend, error) {
		a := storage.AuditAppend{Mark: end.Mark + int64(n), Now: e.now}
		for i := range int64(n) {
			a.Entries = append(a.Entries, e.entry(end.Size+i))
		}
		a.Tiles = []storage.AuditTile{{Hashes: []byte(strings.Repeat("h", 32*int(end.Size+int64(n))))}}
		return a, nil
	}
}

func (e *env) entry(index int64) storage.AuditEntry {
	return storage.AuditEntry{
		Index: index, At: e.now.Add(time.Duration(index) * time.Second), Event: "login.succeeded",
		Grant: "grt_" + string(rune('a'+index%3)), Person: "usr_1", Leaf: []byte(`{"n":1}`),
	}
}

func auditLog(t *testing.T, e *env) {
	head := func(writer string) storage.AuditHead {
		t.Helper()
		h, err := e.s.AuditHead(e.ctx, writer)
		check(t, err)
		return h
	}
	same(t, head("w"), storage.AuditHead{})
	t.Run("OB-04 a batch follows what its writer and the log have", func(t *testing.T) {
		var ends []storage.AuditEnd
		add := func(writer string, known int64, n int) {
			t.Helper()
			var seen storage.AuditEnd // by the last call
			check(t, e.s.AppendAudit(e.ctx, writer, known, func(end storage.AuditEnd) (storage.AuditAppend, error) {
				seen = end
				return e.appended(n)(end)
			}))
			ends = append(ends, seen)
		}
		add("w", -1, 3)
		add("v", -1, 0)
		add("w", 3, 2)
		three := storage.AuditTile{Hashes: []byte(strings.Repeat("h", 3*32))}
		same(t, ends, []storage.AuditEnd{
			{},
			{AuditHead: storage.AuditHead{Size: 3}, Tiles: []storage.AuditTile{three}},
			{AuditHead: storage.AuditHead{Size: 3, Mark: 3}},
		})
		same(t, head("w"), storage.AuditHead{Size: 5, Mark: 5})
		same(t, head("v"), storage.AuditHead{Size: 5})
		tiles, err := e.s.AuditTiles(e.ctx, 0, 0, 5)
		check(t, err)
		if len(tiles) != 1 || len(tiles[0].Hashes) != 5*32 {
			t.Errorf("got %d tiles", len(tiles))
		}
		all, err := e.s.AuditEntries(e.ctx, storage.AuditQuery{Limit: 9})
		check(t, err)
		same(t, all, []storage.AuditEntry{e.entry(0), e.entry(1), e.entry(2), e.entry(3), e.entry(4)})
	})
	t.Run("OB-04 a batch that cannot be made appends nothing", func(t *testing.T) {
		failed := errors.New("it fails")
		wantErr(t, e.s.AppendAudit(e.ctx, "w", -1, func(storage.AuditEnd) (storage.AuditAppend, error) {
			return storage.AuditAppend{}, failed
		}), failed)
		same(t, head("w"), storage.AuditHead{Size: 5, Mark: 5})
	})
	t.Run("OB-04 entries are found by index, grant, event and time, the first or the last ones", func(t *testing.T) {
		for _, c := range []struct {
			q    storage.AuditQuery
			want []int64
		}{
			{storage.AuditQuery{Limit: 2}, []int64{0, 1}},
			{storage.AuditQuery{Limit: 2, Last: true}, []int64{3, 4}},
			{storage.AuditQuery{Limit: 2, Last: true, Below: 4}, []int64{2, 3}},
			{storage.AuditQuery{Limit: 9, From: 1, Below: 3}, []int64{1, 2}},
			{storage.AuditQuery{Limit: 9, Grant: "grt_a"}, []int64{0, 3}},
			{storage.AuditQuery{Limit: 9, Event: "login.succeeded", From: 4}, []int64{4}},
			{storage.AuditQuery{Limit: 9, Event: "login.failed"}, nil},
			{storage.AuditQuery{Limit: 9, Since: e.now.Add(time.Second), Below: 3}, []int64{1, 2}},
			{storage.AuditQuery{}, nil},
		} {
			found, err := e.s.AuditEntries(e.ctx, c.q)
			check(t, err)
			same(t, indexes(found), c.want)
		}
	})
	t.Run("OB-04 old entries go, oldest first, and their hashes stay", func(t *testing.T) {
		first, err := e.s.RemoveAudit(e.ctx, 3, 2)
		check(t, err)
		same(t, first, int64(2))
		first, err = e.s.RemoveAudit(e.ctx, 3, 2)
		check(t, err)
		same(t, first, int64(3))
		first, err = e.s.RemoveAudit(e.ctx, 1, 2)
		check(t, err)
		same(t, first, int64(3))
		same(t, head("w"), storage.AuditHead{Size: 5, First: 3, Mark: 5})
		left, err := e.s.AuditEntries(e.ctx, storage.AuditQuery{Limit: 9})
		check(t, err)
		if len(left) != 2 || left[0].Index != 3 {
			t.Errorf("got %+v", left)
		}
		tiles, err := e.s.AuditTiles(e.ctx, 0, 0, 5)
		check(t, err)
		same(t, len(tiles), 1)
	})
	t.Run("OB-04 of one size there is one checkpoint", func(t *testing.T) {
		_, err := e.s.LastCheckpoint(e.ctx)
		wantErr(t, err, storage.ErrNotFound)
		five := storage.AuditCheckpoint{Size: 5, At: e.now, Signed: []byte("five\n")}
		three := storage.AuditCheckpoint{Size: 3, At: e.now, Signed: []byte("three\n")}
		check(t, e.s.PutCheckpoint(e.ctx, five))
		check(t, e.s.PutCheckpoint(e.ctx, three))
		wantErr(t, e.s.PutCheckpoint(e.ctx, storage.AuditCheckpoint{Size: 5, At: e.now}), storage.ErrExists)
		last, err := e.s.LastCheckpoint(e.ctx)
		check(t, err)
		same(t, last, five)
		all, err := e.s.Checkpoints(e.ctx, 0, 9)
		check(t, err)
		same(t, all, []storage.AuditCheckpoint{three, five})
		all, err = e.s.Checkpoints(e.ctx, 3, 9)
		check(t, err)
		same(t, all, []storage.AuditCheckpoint{five})
	})
	t.Run("OB-04 the mark of a writer is kept while its entries may wait", func(t *testing.T) {
		_, err := e.s.Sweep(e.ctx, storage.Retention{Now: e.now.Add(399 * 24 * time.Hour)}, 100)
		check(t, err)
		same(t, head("w").Mark, int64(5))
		_, err = e.s.Sweep(e.ctx, storage.Retention{Now: e.now.Add(401 * 24 * time.Hour)}, 100)
		check(t, err)
		same(t, head("w").Mark, int64(0))
	})
}

// raceAppend appends from several replicas at once. Each must see the end left by another (OP-01).
func raceAppend(t *testing.T, e *env) {
	var c tally
	compete(func(i int) {
		c.add(e.s.AppendAudit(e.ctx, fmt.Sprint("w", i), -1, e.appended(1)))
	})
	h, err := e.s.AuditHead(e.ctx, "")
	check(t, err)
	all, err := e.s.AuditEntries(e.ctx, storage.AuditQuery{Limit: int(h.Size) + 1})
	check(t, err)
	c.want(t, racers)
	same(t, len(all), racers)
	for i, entry := range all {
		same(t, entry.Index, int64(i))
	}
}

func indexes(entries []storage.AuditEntry) (out []int64) {
	for _, e := range entries {
		out = append(out, e.Index)
	}
	return out
}

// auditSearches checks that results come in pages, latest first, also if an entry was late, and
// that one search reads a bounded number of entries.
func auditSearches(t *testing.T, e *env) {
	at := func(second int) time.Time { return e.now.Add(time.Duration(second) * time.Second) }
	entries := []storage.AuditEntry{
		{At: at(1), Event: "a", Grant: "grt_a", Person: "usr_1"},
		{At: at(5), Event: "b", Grant: "grt_a", Person: "usr_2"},
		{At: at(2), Event: "a", Person: "usr_1"}, // waited in a file
		{At: at(5), Event: "a", Grant: "grt_b", Person: "usr_1"},
		{At: at(6), Event: "b", Grant: "grt_a", Person: "usr_1"},
	}
	e.appendEntries(t, entries)
	t.Run("OP-06 entries are found by grant, person, event and time, the latest first", func(t *testing.T) {
		for _, c := range []struct {
			q    storage.AuditSearch
			want []int64
		}{
			{storage.AuditSearch{}, []int64{4, 3, 1, 2, 0}},
			{storage.AuditSearch{Event: "a"}, []int64{3, 2, 0}},
			{storage.AuditSearch{Event: "none"}, nil},
			{storage.AuditSearch{Until: at(5)}, []int64{2, 0}},
			{storage.AuditSearch{Since: at(2), Until: at(6)}, []int64{3, 1, 2}},
			{storage.AuditSearch{Event: "a", Since: at(2), Until: at(5)}, []int64{2}},
			{storage.AuditSearch{Grant: "grt_a"}, []int64{4, 1, 0}},
			{storage.AuditSearch{Grant: "grt_a", Event: "b", Person: "usr_1"}, []int64{4}},
			{storage.AuditSearch{Person: "usr_1"}, []int64{4, 3, 2, 0}},
			{storage.AuditSearch{Person: "usr_1", Since: at(2), Until: at(6)}, []int64{3, 2}},
			{storage.AuditSearch{Person: "usr_2", Until: at(5)}, nil},
		} {
			for limit := 1; limit < 7; limit++ {
				c.q.Limit, c.q.After = limit, storage.AuditPlace{}
				same(t, indexes(e.searched(t, c.q)), c.want)
			}
		}
		found, next, err := e.s.SearchAudit(e.ctx, storage.AuditSearch{})
		check(t, err)
		if len(found) > 0 || !next.At.IsZero() {
			t.Errorf("without a limit: got %v, and %v to go on from", found, next)
		}
	})
	t.Run("OP-06 one search reads a bounded number of entries", func(t *testing.T) {
		many := make([]storage.AuditEntry, storage.AuditReads)
		for i := range many {
			many[i] = storage.AuditEntry{At: at(10), Event: "many", Grant: "grt_a", Person: "usr_1"}
		}
		e.appendEntries(t, many)
		for _, q := range []storage.AuditSearch{
			{Grant: "grt_a", Event: "b"}, {Person: "usr_1", Event: "b"}, {Person: "usr_1", Until: at(10)},
		} {
			q.Limit = 1
			found, next, err := e.s.SearchAudit(e.ctx, q)
			check(t, err)
			if len(found) > 0 || next.Index != 5 {
				t.Errorf("%+v: got %v, and %v to go on from, want index 5", q, found, next)
			}
			same(t, indexes(e.searched(t, q))[0], int64(4))
			for _, reads := range []int{1, 1000} {
				q.Reads, q.Limit = reads, 1000
				_, next, err = e.s.SearchAudit(e.ctx, q)
				check(t, err)
				same(t, next.Index, storage.AuditReads+5-int64(reads))
			}
		}
		found, next, err := e.s.SearchAudit(e.ctx, storage.AuditSearch{Event: "many", Limit: 5, Reads: 2})
		check(t, err)
		same(t, []int{len(found), int(next.Index)}, []int{2, storage.AuditReads + 3})
		same(t, len(e.searched(t, storage.AuditSearch{Event: "many", Limit: 5000})), storage.AuditReads)
		same(t, indexes(e.searched(t, storage.AuditSearch{Until: at(10), Limit: 9})), []int64{4, 3, 1, 2, 0})
	})
}

// appendEntries appends entries to the log.
func (e *env) appendEntries(t *testing.T, entries []storage.AuditEntry) {
	t.Helper()
	check(t, e.s.AppendAudit(e.ctx, "w", -1, func(end storage.AuditEnd) (storage.AuditAppend, error) {
		for i := range entries {
			entries[i].Index, entries[i].Leaf = end.Size+int64(i), []byte(`{"n":1}`)
		}
		return storage.AuditAppend{Mark: end.Mark + 1, Entries: entries, Now: e.now}, nil
	}))
}

// searched reads all pages of a search.
func (e *env) searched(t *testing.T, q storage.AuditSearch) (all []storage.AuditEntry) {
	t.Helper()
	for range 50 {
		found, next, err := e.s.SearchAudit(e.ctx, q)
		check(t, err)
		all = append(all, found...)
		if next.At.IsZero() {
			return all
		}
		q.After = next
	}
	t.Fatal("the pages have no end")
	return nil
}
