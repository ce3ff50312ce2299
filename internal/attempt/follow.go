package attempt

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Some clients read the metadata before every refresh. A successful refresh is not stored, so the
// reading alone would look like an unfinished attempt. Therefore the first refresh after a reading
// is stored. It may arrive at another server than the reading. The store knows both, and is queried
// once per second for all refreshes, after other servers have written their steps.
const (
	// whenStored is how long after a refresh the steps of other servers are stored.
	whenStored = 3 * time.Second
	// maxAfter limits the waiting refreshes, and maxAsked the refreshes in one query.
	maxAfter = 4096
	maxAsked = 256
)

// keyReading is the key of metadata readings by one client, and of the refreshes that follow,
// within an interval of afterReading.
const keyReading = "reading:"

// reader identifies the client of a reading: its address and agent.
func (s Step) reader() string { return s.Keys.Address + " " + s.Request.Agent }

// readIn returns the key for readings of a client in the interval around at.
func (s Step) readIn(at time.Time) string {
	return keyReading + strconv.FormatInt(at.Unix()/int64(afterReading/time.Second), 36) + " " + s.reader()
}

// mayFollow queues a successful refresh, which is stored only if it follows a reading.
func (r *Recorder) mayFollow(s Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.failed() || s.Keys.Address == "" || len(r.after) == maxAfter {
		return
	}
	r.after = append(r.after, s)
}

// follow stores the first refresh of each client that follows a reading. It considers refreshes
// that have waited long enough, or all.
func (r *Recorder) follow(ctx context.Context, all bool) {
	r.mu.Lock()
	now, due := r.c.Now(), []Step(nil)
	r.after = slices.DeleteFunc(r.after, func(s Step) bool {
		if !all && now.Before(s.At.Add(whenStored)) {
			return false
		}
		due = append(due, s)
		return true
	})
	r.mu.Unlock()
	for some := range slices.Chunk(due, maxAsked) {
		known := r.readings(ctx, some)
		for _, s := range some {
			before := known[s.reader()]
			i := slices.IndexFunc(before, func(b Step) bool { return !b.At.After(s.At) }) // the last one before s
			if i >= 0 && before[i].Kind == Discovery && s.At.Sub(before[i].At) <= afterReading {
				r.take(s)
				known[s.reader()] = slices.Insert(before, i, s)
			}
		}
	}
}

// readings returns the metadata readings of the given refreshes' clients and the refreshes that
// followed them, newest first. If the store fails, it returns none, and no refresh is stored.
func (r *Recorder) readings(ctx context.Context, of []Step) map[string][]Step {
	var keys []string
	from := of[0].At
	for _, s := range of {
		keys = append(keys, s.readIn(s.At), s.readIn(s.At.Add(-afterReading)))
		if s.At.Before(from) {
			from = s.At
		}
	}
	slices.Sort(keys)
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	found, err := r.c.Store.Steps(ctx, storage.StepQuery{
		Keys: slices.Compact(keys), From: from.Add(-afterReading), Until: r.c.Now().Add(time.Minute), Limit: maxRead,
	})
	out := map[string][]Step{}
	if err != nil {
		return out
	}
	for _, row := range found {
		var s Step
		if json.Unmarshal(row.Body, &s) == nil {
			out[s.reader()] = append(out[s.reader()], s)
		}
	}
	return out
}
