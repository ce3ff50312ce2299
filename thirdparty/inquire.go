package thirdparty

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

const (
	// claimTTL is how long one replica reserves a session, to ask the provider and then store the
	// answer.
	claimTTL = 30 * time.Second
	// questionTTL limits each of the two questions that fit into claimTTL.
	questionTTL = 12 * time.Second
	// refreshAhead is how long before its expiry an access token is renewed.
	refreshAhead = time.Minute
	// keepTrying is how long the server retries to store a refresh token that was issued only once.
	// Beyond claimTTL, the version of the row still separates two answers.
	keepTrying = time.Minute
)

var (
	// errHeld means that another replica is asking.
	errHeld = errors.New("another replica asks the provider")
	// errUnanswered means that the provider's answer does not decide.
	errUnanswered = errors.New("the provider gave no answer")
	// errResting means that the provider is not asked, because it has not answered recently, or
	// this session must wait.
	errResting = errors.New("the provider has not answered lately")
)

// inquire asks the provider about a session and stores the answer. Of all callers in all processes,
// one asks. Callers in the same process share its answer; others get errHeld. A question does not
// stop when the request that asked it ends.
//
// It returns errUnanswered if the state is unknown and storage.ErrRevoked if the session has ended.
func (d *Delegation) inquire(ctx context.Context, c *connector, u storage.Upstream) error {
	lasting := context.WithoutCancel(ctx)
	shared := d.flights.DoChan(u.ID, func() (any, error) { return nil, d.claim(lasting, c, u) })
	answer := make(chan error, 1)
	d.pending.Go(func() { answer <- (<-shared).Err })
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return c.unavailable(ctx.Err())
	}
}

// claim reserves the session for this replica and asks.
func (d *Delegation) claim(ctx context.Context, c *connector, u storage.Upstream) (err error) {
	defer func() { // hostile answers are parsed below and must not crash the process
		if p := recover(); p != nil {
			d.cfg.Logger.ErrorContext(ctx, "panic while asking a provider", "connector", c.ID, "panic", fmt.Sprint(p),
				"stack", string(debug.Stack()))
			err = fmt.Errorf("%w: panic", errUnanswered)
		}
	}()
	if _, err := d.providerGroups(ctx); err != nil {
		return err
	}
	if err := d.take(ctx, u); err != nil {
		return err
	}
	if !d.health[c.ID].Ask(u.ID, d.now()) {
		return d.postpone(ctx, c, u, errResting)
	}
	held, err := d.open(u)
	switch {
	case errors.Is(err, storage.ErrRevoked): // not accepted, as if the connector were not configured
		return errors.Join(err, d.putOff(ctx, u))
	case err != nil && byID(u.Sealed) && d.judge(c, u, err) != nil:
		return d.over(ctx, u, reasonExpired)
	case err != nil:
		d.cfg.Logger.ErrorContext(ctx, "provider session cannot be checked", "connector", c.ID, "error", err)
		return d.postpone(ctx, c, u, err)
	}
	return d.ask(ctx, c, u, held)
}

// take reserves the session for this replica. Every write to a session needs the reservation;
// otherwise it could overwrite another replica's answer.
func (d *Delegation) take(ctx context.Context, u storage.Upstream) error {
	now := d.now()
	switch err := d.cfg.Store.ClaimUpstream(ctx, u.ID, u.Version, now, now.Add(claimTTL)); {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrSpent):
		return errHeld
	case errors.Is(err, storage.ErrRevoked), errors.Is(err, storage.ErrNotFound):
		return errEnded("")
	default:
		return fmt.Errorf("thirdparty: claim: %w", err)
	}
}

// ask asks in the way that the state of the tokens requires.
func (d *Delegation) ask(ctx context.Context, c *connector, u storage.Upstream, held holding) error {
	if held.Renewed != nil {
		return d.resume(ctx, c, u, held)
	}
	t, now := held.Tokens, d.now()
	switch {
	case t.Refresh != "" &&
		(t.Access == "" || expiring(t, now) || c.CheckBy == checkByRefresh || !c.Detached && c.unheard(held.Profile)):
		return d.renew(ctx, c, u, held)
	case c.Detached: // the provider only identifies the user
		return d.confirm(ctx, c, u, held, nil)
	case t.Refresh == "" && t.ExpiredAt(now): // no token is left to ask with
		return d.over(ctx, u, reasonExpired)
	}
	limited, cancel := context.WithTimeout(ctx, questionTTL)
	p, err := c.Inspect(limited, t)
	cancel()
	switch {
	case err == nil:
		d.health[c.ID].Answered(u.ID)
		return d.confirm(ctx, c, u, held, p)
	case (errors.Is(err, provider.ErrDenied) || errors.Is(err, provider.ErrUnsupported)) && t.Refresh != "":
		return d.renew(ctx, c, u, held) // the refresh decides
	case errors.Is(err, provider.ErrUnsupported):
		return d.confirm(ctx, c, u, held, nil)
	case errors.Is(err, provider.ErrDenied):
		d.health[c.ID].Answered(u.ID)
		return d.over(ctx, u, reasonRevoked)
	}
	return d.postpone(ctx, c, u, err)
}

// confirm stores that the session is valid, with the provider's answer.
func (d *Delegation) confirm(
	ctx context.Context, c *connector, u storage.Upstream, held holding, p *provider.Profile,
) error {
	if p != nil {
		if p.Subject != u.Subject {
			return d.postpone(ctx, c, u, fmt.Errorf("%w: it is about another person", provider.ErrGarbage))
		}
		held.Profile = p.Over(held.Profile)
	}
	admitted, now := c.admit(held.Profile), d.now()
	if admitted == nil {
		u.CheckedAt = now
	}
	u.SessionID, u.Scopes, u.DueAt = held.Profile.SessionID, held.Tokens.Scopes, c.nextCheck(held.Tokens, now)
	var err error
	if u.Sealed, err = d.seal(u, held); err != nil {
		return err
	}
	if err := d.save(ctx, u); err != nil {
		return err
	}
	if admitted != nil {
		d.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "provider session is not allowed any more",
			slog.String("connector", c.ID), slog.Any("cause", admitted))
		key := storage.UpstreamKey{Connector: u.Connector, Subject: u.Subject, UserID: u.UserID}
		return errors.Join(errEnded(reasonNotAllowed), d.end(ctx, key, reasonNotAllowed))
	}
	return nil
}

// save stores an answer and retries, because a rotated refresh token exists nowhere else. It
// returns errHeld if another replica stored an answer.
func (d *Delegation) save(ctx context.Context, u storage.Upstream) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTrying)
	defer cancel()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := d.cfg.Store.SaveUpstream(ctx, u)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, storage.ErrSpent):
			return d.saved(ctx, u)
		case errors.Is(err, storage.ErrRevoked), errors.Is(err, storage.ErrNotFound):
			return errEnded("")
		}
		d.cfg.Logger.WarnContext(ctx, "provider session could not be stored, trying again", "connector", u.Connector,
			"provider_session", u.ID, "error", err)
		if wait(ctx, pause) != nil {
			return fmt.Errorf("thirdparty: save: %w", err)
		}
	}
}

// saved distinguishes a lost reply, where this process itself changed the version, from an answer
// of another replica.
func (d *Delegation) saved(ctx context.Context, u storage.Upstream) error {
	now, _, err := d.live(ctx, u.ID)
	if err != nil || now.Version == u.Version+1 && bytes.Equal(now.Sealed, u.Sealed) {
		return err
	}
	return errHeld
}

// postpone releases the session until later, after a question without an answer.
func (d *Delegation) postpone(ctx context.Context, c *connector, u storage.Upstream, cause error) error {
	d.unwell(ctx, c, u.ID, cause)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	u.DueAt, u.Sealed = d.later(c, u, cause), d.current(u)
	if err := d.cfg.Store.SaveUpstream(ctx, u); err != nil && !errors.Is(err, storage.ErrSpent) {
		d.cfg.Logger.WarnContext(ctx, "provider session could not be postponed", "connector", c.ID,
			"provider_session", u.ID, "error", err)
	}
	return fmt.Errorf("%w: %w", errUnanswered, cause)
}

// denied handles a provider that refuses further renewals.
func (d *Delegation) denied(ctx context.Context, c *connector, u storage.Upstream, held holding) error {
	if c.Detached { // the sign-in remains; only the token for resource servers is lost
		held.Tokens, held.Renewed = provider.Tokens{}, nil
		return d.confirm(ctx, c, u, held, nil)
	}
	return d.over(ctx, u, reasonRevoked)
}

// over ends a session.
func (d *Delegation) over(ctx context.Context, u storage.Upstream, reason string) error {
	if err := d.end(ctx, storage.UpstreamKey{ID: u.ID}, reason); err != nil {
		return err
	}
	return errEnded(reason)
}

// nextCheck returns when to ask the provider next. Sessions that began together drift apart.
func (c *connector) nextCheck(t provider.Tokens, now time.Time) time.Time {
	every := c.CheckEvery
	if c.Detached {
		every = 24 * time.Hour // only to apply the rules again
	}
	due := now.Add(every - spread(every))
	if c.Detached || t.Expires.IsZero() {
		return due
	}
	end := t.Expires
	if t.Refresh != "" {
		end = end.Add(-min(refreshAhead, end.Sub(now)/2))
	}
	if floor := now.Add(time.Second); end.Before(floor) {
		end = floor
	}
	if end.Before(due) {
		return end
	}
	return due
}

// later returns when to ask again after a question without an answer: soon at first, and less often
// the longer the outage lasts. A delay that the provider demands is respected.
func (d *Delegation) later(c *connector, u storage.Upstream, cause error) time.Time {
	now := d.now()
	pause := max(retryAfter, min(now.Sub(u.CheckedAt)/4, c.CheckEvery))
	if often := (*provider.TooOften)(nil); errors.As(cause, &often) {
		pause = max(pause, c.pause(often))
	}
	return now.Add(pause + spread(pause))
}

// spread returns a random duration of up to a tenth of d.
func spread(d time.Duration) time.Duration { return rand.N(d/10 + 1) }

// expiring reports whether the access token is about to expire.
func expiring(t provider.Tokens, now time.Time) bool { return t.ExpiredAt(now.Add(refreshAhead)) }
