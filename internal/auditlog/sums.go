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
	// firstWindow is the first window of a sum. Each window is twice as long as the one before it, up to
	// longestWindow, and for tool calls up to longestCalls.
	firstWindow   = 15 * time.Minute
	longestWindow = 24 * time.Hour
	longestCalls  = time.Hour
	// sumIdle is after how long without an event a sum is forgotten.
	sumIdle = 24 * time.Hour
	// maxNetworks is from how many networks the first event of a kind is an entry of its own.
	maxNetworks = 8
	// maxSums bounds the sums in memory, at about 1,200 bytes each.
	maxSums = 50_000
	// maxKinds bounds the leaves of their kinds in bytes, because the names of tools can be long.
	maxKinds = 100 << 20
	// sumLine is how much longer than the leaf of its kind the line of a sum in the spool can be.
	sumLine = 200
	// maxLine is longer than the longest leaf, whose fields can all be escaped.
	maxLine = 1 << 20
)

// The spool never grows beyond what is read of it after a crash: keep renews a file of twice its sums and spoolTidy.
const _ = uint(maxSpool - 2*(maxKinds+maxSums*sumLine) - spoolTidy - maxLine)

// varying are the fields in which routine events differ that are otherwise alike. An entry for many has none of
// them.
var varying = []string{"arguments_digest", "at", "jti", "remote", "request_id"}

// sums counts routine events (see audit.Routine) so that the log has few entries for many of them (OP-02).
// The first event of a kind is an entry, and so is the first from each other network. Events like it, in all fields
// but the varying ones, are counted until the window of their sum ends, and then become one entry with their number.
type sums struct {
	byKey map[string]*sum
	due   byEnd
	kinds int   // the bytes of all keys
	next  int64 // the number of the next window
	spool spool // what each window with events would be as an entry
}

// sum counts the events of one kind in one window.
type sum struct {
	kind
	number  int64 // of the window, in the spool
	window  time.Duration
	longest time.Duration
	ends    time.Time
	count   int64
	first   time.Time
	last    time.Time
	used    time.Time // when an event of the kind was recorded last
	// networks are those of the events, up to maxNetworks.
	networks []string
}

// kind is what events have in common that are counted together.
type kind struct {
	event  string
	fields []verify.Field
	key    string // the leaf, without a time
}

// occurrence is one event of a kind.
type occurrence struct {
	kind
	at      time.Time
	network string // that the request came from; "": unknown
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

// count counts an event and returns its sum, or nil for an event that must be an entry because nothing like it was
// recorded lately. dropped are the sums that made room for it.
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

// pop removes the sum whose window ends first.
func (s *sums) pop() *sum {
	c := heap.Pop(&s.due).(*sum)
	delete(s.byKey, c.key)
	s.kinds -= len(c.key)
	return c
}

// isNew reports whether the kind has no event yet from a network, and remembers the network. Beyond maxNetworks none is
// new.
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

// ended returns a sum whose window has ended with events in it, or nil. The next window of the sum begins, unless
// its kind is idle.
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

// counting returns the sums with events in their window, in the order in which these began.
func (s *sums) counting() (out []*sum) {
	for _, c := range s.byKey {
		if c.count > 0 {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *sum) int { return cmp.Compare(a.number, b.number) })
	return out
}

// entry returns the entry for the events of the window so far. Its time is that of the last one.
func (c *sum) entry() storage.AuditEntry {
	at, fields := fieldsOf(slices.Clone(c.fields), c.last, []slog.Attr{
		slog.Int64("count", c.count), slog.Time("first", c.first), slog.Time("last", c.last),
	})
	return entryOf(at, c.event, fields)
}

// keep writes a sum to the spool, in place of what the spool has of its window.
func (s *sums) keep(c *sum) error {
	if err := s.spool.begin(newWriterID()); err != nil || s.spool.file == nil {
		return err
	}
	if s.spool.size >= s.spool.tidyAt {
		return s.spool.renew(s.spool.id(), 0, s.lines())
	}
	return s.spool.add(c.number, c.entry().Leaf)
}

// drop takes a window out of the spool.
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

// parseSums reads the spool of sums: the last line of each window counts, and a window whose last line has no
// entry is in the log. It counts the lines that cannot be read. Entries are numbered from 0.
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

// byEnd is a heap of sums: the window of the first ends first.
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
