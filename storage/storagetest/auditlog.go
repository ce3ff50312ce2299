package storagetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// appended is a batch of n entries at a size, by a writer that has appended from before.
func (e *env) appended(writer string, size, from int64, n int) storage.AuditAppend {
	a := storage.AuditAppend{Size: size, Writer: writer, From: from, To: from + int64(n), Now: e.now}
	for i := range int64(n) {
		a.Entries = append(a.Entries, storage.AuditEntry{
			Index: size + i, At: e.now.Add(time.Duration(size+i) * time.Second), Event: "login.succeeded",
			Grant: "grt_" + string(rune('a'+(size+i)%3)), Person: "usr_1", Leaf: []byte(`{"n":1}`),
		})
	}
	a.Tiles = []storage.AuditTile{{Hashes: []byte(strings.Repeat("h", 32*int(size+int64(n))))}}
	return a
}

func auditLog(t *testing.T, e *env) {
	head := func(writer string) storage.AuditHead {
		t.Helper()
		h, err := e.s.AuditHead(e.ctx, writer)
		check(t, err)
		return h
	}
	same(t, head("w"), storage.AuditHead{})
	t.Run("OB-04 entries are appended at the end alone, each once", func(t *testing.T) {
		first := e.appended("w", 0, 0, 3)
		check(t, e.s.AppendAudit(e.ctx, first))
		wantErr(t, e.s.AppendAudit(e.ctx, first), storage.ErrChanged)
		wantErr(t, e.s.AppendAudit(e.ctx, e.appended("v", 0, 0, 1)), storage.ErrChanged)
		wantErr(t, e.s.AppendAudit(e.ctx, e.appended("v", 4, 0, 1)), storage.ErrChanged)
		// What came at the right place, but was there already by the mark of its writer.
		wantErr(t, e.s.AppendAudit(e.ctx, e.appended("w", 3, 0, 3)), storage.ErrChanged)
		same(t, head("w"), storage.AuditHead{Size: 3, Mark: 3})
		same(t, head("v"), storage.AuditHead{Size: 3})
		check(t, e.s.AppendAudit(e.ctx, e.appended("w", 3, 3, 2)))
		same(t, head("w"), storage.AuditHead{Size: 5, Mark: 5})
		tiles, err := e.s.AuditTiles(e.ctx, 0, 0, 5)
		check(t, err)
		if len(tiles) != 1 || len(tiles[0].Hashes) != 5*32 {
			t.Errorf("got %d tiles", len(tiles))
		}
		all, err := e.s.AuditEntries(e.ctx, storage.AuditQuery{Limit: 9})
		check(t, err)
		same(t, all, append(first.Entries, e.appended("w", 3, 3, 2).Entries...))
	})
	t.Run("OB-04 entries are found by grant, person, event and time, the first or the last ones", func(t *testing.T) {
		for _, c := range []struct {
			q    storage.AuditQuery
			want []int64
		}{
			{storage.AuditQuery{Limit: 2}, []int64{0, 1}},
			{storage.AuditQuery{Limit: 2, Last: true}, []int64{3, 4}},
			{storage.AuditQuery{Limit: 2, Last: true, Below: 4}, []int64{2, 3}},
			{storage.AuditQuery{Limit: 9, From: 1, Below: 3}, []int64{1, 2}},
			{storage.AuditQuery{Limit: 9, Grant: "grt_a"}, []int64{0, 3}},
			{storage.AuditQuery{Limit: 9, Person: "usr_1", Event: "login.succeeded", From: 4}, []int64{4}},
			{storage.AuditQuery{Limit: 9, Event: "login.failed"}, nil},
			{
				storage.AuditQuery{Limit: 9, Since: e.now.Add(time.Second), Until: e.now.Add(3 * time.Second)},
				[]int64{1, 2},
			},
			{storage.AuditQuery{}, nil},
		} {
			found, err := e.s.AuditEntries(e.ctx, c.q)
			check(t, err)
			var got []int64
			for _, f := range found {
				got = append(got, f.Index)
			}
			same(t, got, c.want)
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

// raceAppend has 32 replicas append to a log of one size.
func raceAppend(t *testing.T, e *env) {
	for _, size := range []int64{0, 1} { // the one that begins the log, and one that goes on
		var c tally
		compete(func(i int) {
			c.add(e.s.AppendAudit(e.ctx, e.appended(fmt.Sprint(size, i), size, 0, 1)), storage.ErrChanged)
		})
		c.want(t, 1)
	}
}
