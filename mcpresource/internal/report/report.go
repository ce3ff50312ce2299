package report

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

type batch struct {
	oauth.Report
	since time.Time // time of the first attempt
}

func (b *batch) size() int { return len(b.Decisions) + len(b.Calls) }

// run sends reports until Close.
func (r *Reporter) run() {
	defer close(r.stopped)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-r.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	var under *batch
	wait, timer := retryFirst, time.NewTimer(r.c.Every)
	defer timer.Stop()
	for {
		full := r.full
		if under != nil {
			full = nil // it will be sent with the retry
		}
		select {
		case <-r.stop:
			r.putBack(under)
			return
		case <-timer.C:
		case <-full:
		}
		var err error
		if under, err = r.sendAll(ctx, under); err == nil {
			wait = retryFirst
			timer.Reset(r.c.Every)
			continue
		}
		timer.Reset(max(wait, r.c.Every))
		wait = min(2*wait, retryMost)
	}
}

// sendAll sends the waiting entries, after the unsent report b. It returns a report that must be
// sent again, or nil.
func (r *Reporter) sendAll(ctx context.Context, b *batch) (*batch, error) {
	for {
		if b == nil {
			if b = r.next(); b == nil {
				return nil, nil
			}
		}
		again, err := r.send(ctx, b)
		switch {
		case err == nil:
		case again && ctx.Err() != nil, again && r.c.Now().Sub(b.since) < giveUp:
			r.warn(err)
			return b, err
		default:
			r.warn(err)
			r.lose(b.size())
			return nil, err
		}
		b = nil
	}
}

// next takes the waiting entries for the next report. It returns nil without any.
func (r *Reporter) next() *batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := &batch{Report: oauth.Report{ID: rand.Text()}, since: r.c.Now()}
	room := maxReport - len("report=") - 512 // for the text around decisions and calls
	fits := func(v any) bool {
		raw, err := json.Marshal(v)
		room -= len(url.QueryEscape(string(raw))) + len("%2C")
		return err == nil && room >= 0 && b.size() < oauth.MaxReported
	}
	// At most half of a report is decisions, so that neither kind has to wait for the other.
	for len(r.decisions) > 0 && len(b.Decisions) < oauth.MaxReported/2 && fits(r.decisions[0]) {
		b.Decisions, r.decisions = append(b.Decisions, r.decisions[0]), r.decisions[1:]
	}
	for len(r.calls) > 0 && fits(r.calls[0]) {
		b.Calls, r.calls = append(b.Calls, r.calls[0]), r.calls[1:]
	}
	if b.size() == 0 {
		return nil
	}
	r.sending = b.size()
	return b
}

// send sends a report. again reports whether a failed one is worth sending again.
func (r *Reporter) send(ctx context.Context, b *batch) (again bool, err error) {
	r.mu.Lock()
	lost := r.stats.Lost
	b.Lost = lost - r.told
	r.mu.Unlock()
	b.SentAt = r.c.Now()
	raw, err := json.Marshal(b.Report)
	if err != nil {
		return false, err
	}
	status, body, err := r.endpoint.Post(ctx, url.Values{"report": {string(raw)}})
	if err != nil {
		return true, err
	}
	if status != http.StatusOK {
		again := status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
		return again, fmt.Errorf("the resource reports endpoint answered %d", status)
	}
	var answer oauth.Reported
	if err := json.Unmarshal(body, &answer); err != nil {
		return false, fmt.Errorf("the answer of the resource reports endpoint: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	refused := int64(min(max(answer.Refused, 0), b.size()))
	r.stats.Taken, r.stats.Refused = r.stats.Taken+int64(b.size())-refused, r.stats.Refused+refused
	r.sending, r.told = 0, lost
	return false, nil
}

func (r *Reporter) lose(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Lost += int64(n)
	r.sending = 0
}

// warn logs a failure, at most once a minute.
func (r *Reporter) warn(err error) {
	r.mu.Lock()
	now, stats := r.c.Now(), r.stats
	due := now.Sub(r.warned) >= time.Minute
	if due {
		r.warned = now
	}
	r.mu.Unlock()
	if due {
		r.c.Logger.Warn("the authorization server does not take reports of this resource server", "error", err,
			"lost", stats.Lost)
	}
}

// putBack stores a report that Close sends again with the same id.
func (r *Reporter) putBack(b *batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unsent = b
}

// Close sends the waiting entries, each report once, and stops the reporter. The error states how
// many entries could not be sent before ctx ended. Close the reporter after the server whose guards
// use it.
func (r *Reporter) Close(ctx context.Context) error {
	var err error
	r.closing.Do(func() {
		close(r.stop)
		<-r.stopped
		r.mu.Lock()
		r.closed = true
		under := r.unsent
		r.mu.Unlock()
		if _, err = r.sendAll(ctx, under); err == nil {
			return
		}
		left := r.Stats().Waiting
		r.mu.Lock()
		r.decisions, r.calls = nil, nil
		r.mu.Unlock()
		r.lose(int(left))
		err = fmt.Errorf("mcpresource: %d decisions and calls were not reported: %w", left, err)
	})
	return err
}
