package auditlog

import (
	"bytes"
	"cmp"
	"container/heap"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const (
	// firstWindow is the first window of a sum. The window doubles each time, up to longestWindow,
	// or longestCalls for tool calls.
	firstWindow   = 15 * time.Minute
	longestWindow = 24 * time.Hour
	longestCalls  = time.Hour
	// sumIdle is the time without events after which a sum is forgotten.
	sumIdle = 24 * time.Hour
	// maxNetworks limits how many networks get an entry for their first event of a kind.
	maxNetworks = 8
	// maxSums limits the sums in memory, at about 1,200 bytes each.
	maxSums = 50_000
	// maxKinds limits the leaves of all kinds, in bytes, because tool names can be long.
	maxKinds = 100 << 20
	// sumLine limits how much longer a sum's line in the spool is than the leaf of its kind, in
	// bytes.
	sumLine = 200
	// maxLine is longer than any leaf, in bytes, even if all its fields are escaped.
	maxLine = 1 << 20
)

// The spool must stay short enough to be read after a crash. keep rewrites it at twice its sums
// plus spoolTidy.
const _ = uint(maxSpool - 2*(maxKinds+maxSums*sumLine) - spoolTidy - maxLine)

// varying lists the fields that may differ between routine events of one kind. A sum omits them.
var varying = []string{"arguments_digest", "at", "jti", "remote", "request_id"}

// sums counts routine events (see audit.Routine), so that many of them need few entries (OP-02).
// The first event of a kind, and the first from each further network, are entries. Others are
// counted until the window ends; then one entry has their number.
type sums struct {
	byKey map[string]*sum
	due   byEnd
	kinds int   // total size of all keys, in bytes
	next  int64 // number of the next window
	spool spool // contains each window with events in the form of its entry
}

// sum counts the events of one kind in one window.
type sum struct {
	kind
	number  int64 // of the window in the spool
	window  time.Duration
	longest time.Duration
	ends    time.Time
	count   int64
	first   time.Time
	last    time.Time
	used    time.Time // when an event of this kind last occurred
	// networks lists up to maxNetworks networks that events came from.
	networks []string
}

// kind is the common part of events that are counted together.
type kind struct {
	event  string
	fields []verify.Field
	key    string // the leaf with a zero time
}

type occurrence struct {
	kind
	at      time.Time
	network string // that the request came from; "" if unknown
}

func occurrenceOf(now time.Time, event string, attrs []slog.Attr) (o occurrence) {
	o.at, o.fields = fieldsOf(make([]verify.Field, 0, len(attrs)), now, attrs)
	if from, err := netip.ParseAddr(value(o.fields, "remote")); err == nil {
		o.network = network.Coarse(from)
	}
	o.fields = slices.DeleteFunc(o.fields, func(f verify.Field) bool { return slices.Contains(varying, f.Name) })
	o.event, o.key = event, string(verify.AppendLeaf(nil, time.Time{}, event, o.fields))
	return o
}

// count counts an event and returns its sum, or nil for the first event of a kind or from another
// network, which needs an entry. dropped lists sums removed to make room.
func (s *sums) count(o occurrence, now time.Time) (counted *sum, dropped []*sum) {
	if c, ok := s.byKey[o.key]; ok {
		c.used = now
		if c.isNew(o.network) {
			return nil, nil
		}
		if c.count++; c.count == 1 || o.at.Before(c.first) {
			c.first = o.at
		}
		if o.at.After(c.last) {
			c.last = o.at
		}
		return c, nil
	}
	for len(s.due) > 0 && (len(s.due) >= maxSums || s.kinds+len(o.key) > maxKinds) {
		dropped = append(dropped, s.pop())
	}
	c := &sum{
		kind: o.kind, number: s.number(), window: firstWindow, longest: longestWindow, ends: now.Add(firstWindow),
		used: now, networks: []string{o.network},
	}
	if o.event == audit.ToolCalled {
		c.longest = longestCalls
	}
	if s.byKey == nil {
		s.byKey = map[string]*sum{}
	}
	s.byKey[c.key] = c
	s.kinds += len(c.key)
	heap.Push(&s.due, c)
	return nil, dropped
}

func (s *sums) pop() *sum {
	c := heap.Pop(&s.due).(*sum)
	delete(s.byKey, c.key)
	s.kinds -= len(c.key)
	return c
}

// isNew records a network, and reports whether it is new. It returns false once there are
// maxNetworks.
func (c *sum) isNew(network string) bool {
	if slices.Contains(c.networks, network) || len(c.networks) >= maxNetworks {
		return false
	}
	c.networks = append(c.networks, network)
	return true
}

func (s *sums) number() int64 {
	s.next++
	return s.next - 1
}

// ended returns a sum with events whose window has ended, or nil. It starts the next windows, and
// forgets idle sums.
func (s *sums) ended(now time.Time) *sum {
	for len(s.due) > 0 && !s.due[0].ends.After(now) {
		c := s.due[0]
		done := *c
		if c.count == 0 && now.Sub(c.used) >= sumIdle {
			s.pop()
			continue
		}
		c.number, c.count, c.first, c.last = s.number(), 0, time.Time{}, time.Time{}
		c.window = min(2*c.window, c.longest)
		c.ends = now.Add(c.window)
		heap.Fix(&s.due, 0)
		if done.count > 0 {
			return &done
		}
	}
	return nil
}

// counting returns the sums that have events, in the order of their windows.
func (s *sums) counting() (out []*sum) {
	for _, c := range s.byKey {
		if c.count > 0 {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *sum) int { return cmp.Compare(a.number, b.number) })
	return out
}

// entry returns the entry for the events counted so far, with the time of the last one.
func (c *sum) entry() storage.AuditEntry {
	at, fields := fieldsOf(slices.Clone(c.fields), c.last, []slog.Attr{
		slog.Int64("count", c.count), slog.Time("first", c.first), slog.Time("last", c.last),
	})
	return entryOf(at, c.event, fields)
}

// keep writes a sum to the spool, replacing earlier lines of its window.
func (s *sums) keep(c *sum) error {
	if err := s.spool.begin(newWriterID()); err != nil || s.spool.file == nil {
		return err
	}
	if s.spool.size >= s.spool.tidyAt {
		return s.spool.renew(s.spool.id(), 0, s.lines())
	}
	return s.spool.add(c.number, c.entry().Leaf)
}

// drop marks a window in the spool as recorded.
func (s *sums) drop(number int64) error {
	if s.spool.file == nil {
		return nil
	}
	return s.spool.add(number, nil)
}

func (s *sums) lines() []numbered {
	var out []numbered
	for _, c := range s.counting() {
		out = append(out, numbered{c.number, c.entry()})
	}
	return out
}

// parseSums reads a spool of sums, and counts unreadable lines. The last line of a window counts;
// without a leaf, the window is in the log. Entries are numbered from 0.
func parseSums(all []byte) (entries []numbered, broken int) {
	last := map[int64][]byte{}
	for line := range bytes.Lines(all[:bytes.LastIndexByte(all, '\n')+1]) {
		number, leaf, err := cutSpoolLine(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			broken++
			continue
		}
		last[number] = leaf
	}
	for _, number := range slices.Sorted(maps.Keys(last)) {
		if len(last[number]) == 0 {
			continue
		}
		e, err := verify.ParseEntry(last[number])
		if err != nil {
			broken++
			continue
		}
		entries = append(entries, numbered{int64(len(entries)), record(e)})
	}
	return entries, broken
}

// byEnd is a heap of sums, ordered by the end of their windows.
type byEnd []*sum

func (h byEnd) Len() int           { return len(h) }
func (h byEnd) Less(i, j int) bool { return h[i].ends.Before(h[j].ends) }
func (h byEnd) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byEnd) Push(x any)        { *h = append(*h, x.(*sum)) }
func (h *byEnd) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return c
}
