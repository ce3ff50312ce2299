package attempt

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// Some clients read the metadata each time before they refresh. A refresh that succeeds is not kept, and then
// the reading would look like an attempt that went no further. So the first refresh after a reading is. It may
// have come to another server than the reading: the store knows, and is asked once for all refreshes of a
// second, when the steps of other servers are in it.
const (
	// whenStored is how long after a refresh that is.
	whenStored = 3 * time.Second
	// maxAfter bounds the refreshes that wait, and maxAsked those that are asked about at once.
	maxAfter = 4096
	maxAsked = 256
)

// keyReading is of metadata that one client has read, and of refreshes that follow, in a time of afterReading.
const keyReading = "reading:"

// reader is the client of a step, as far as it is known of a reading.
func (s Step) reader() string { return s.Keys.Address + " " + s.Request.Agent }

// readIn is the key of readings of a client in a time.
func (s Step) readIn(at time.Time) string {
	return keyReading + strconv.FormatInt(at.Unix()/int64(afterReading/time.Second), 36) + " " + s.reader()
}

// mayFollow takes a refresh that succeeded, which is kept if it follows a reading.
func (r *Recorder) mayFollow(s Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.failed() || s.Keys.Address == "" || len(r.after) == maxAfter {
		return
	}
	r.after = append(r.after, s)
}

// follow takes the refreshes that follow a reading, of each client the first: of those that have waited long
// enough, or of all.
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
			i := slices.IndexFunc(before, func(b Step) bool { return !b.At.After(s.At) }) // the last before it
			if i >= 0 && before[i].Kind == Discovery && s.At.Sub(before[i].At) <= afterReading {
				r.take(s)
				known[s.reader()] = slices.Insert(before, i, s)
			}
		}
	}
}

// readings are those of the clients of some refreshes, and the refreshes that followed them, the newest first.
// What the store does not say is not known: then no refresh is kept, as most are not.
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
