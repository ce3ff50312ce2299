package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// revoke ends the grant in one of the possible ways while the client refreshes. It returns when the
// change was acknowledged.
func (c *client) revoke(way int) error {
	var wg sync.WaitGroup
	var mu sync.Mutex // guards newest
	newest := c.refresh
	for range 2 {
		wg.Go(func() { // an answer and a refusal are both correct
			if out, _, err := c.token(c.refresh,
				url.Values{"grant_type": {"refresh_token"}, "client_id": {c.id},
					"refresh_token": {c.refresh}}); err == nil {
				mu.Lock()
				newest = out.RefreshToken
				mu.Unlock()
			}
		})
	}
	err := c.revokeBy(way)
	if err == nil {
		c.revoked.Add(1)
		c.mustBeDead(cutOff) // the token before the change
	}
	wg.Wait()
	c.refresh = newest
	return err
}

func (c *client) revokeBy(way int) error {
	claims, err := claimsOf(c.access)
	if err != nil {
		return err
	}
	token := c.refresh
	switch way {
	case 0:
		return c.end([]string{"no live grant"}, "grant", "revoke", claims.GrantID)
	case 1:
		return c.end([]string{"no client", "was deleted"}, "client", "delete", c.id)
	case 2, 3, 4:
		token = c.access
	}
	a, err := c.send(form("/revoke", url.Values{"client_id": {c.id}, "token": {token}}))
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("revoke: %w", refusal(a))
	}
	return err
}

// end runs a command that ends something of the client, and fails if it has already ended. During
// failures this counts as success. PostgreSQL may have committed a first attempt without a
// response, or a repeated refresh may have come too late, which ends the grant.
func (c *client) end(missing []string, args ...string) error {
	began := time.Now()
	err := c.command("", args...)
	ended := func(words string) bool { return strings.Contains(err.Error(), words) }
	if err != nil && slices.ContainsFunc(missing, ended) && c.stormy(began) {
		return nil
	}
	return err
}

// mustBeDead asks every replica, except those that are down.
func (c *client) mustBeDead(invariant string) {
	for _, r := range c.replicas {
		began := time.Now()
		if a, err := c.ask(c.rotation(c.refresh), r); err == nil && a.status != http.StatusBadRequest &&
			a.status != http.StatusUnauthorized {
			c.breach(invariant, "refresh at %s: %d %.200s, %s", r.address, a.status, a.body, time.Since(began))
		}
		a, err := c.ask(introspection(c.access), r)
		if err != nil {
			continue
		}
		var out oauth.Introspection
		if err := json.Unmarshal(a.body, &out); err != nil || a.status != http.StatusOK || out.Active {
			c.breach(invariant, "introspection at %s: %d %.200s", r.address, a.status, a.body)
		}
	}
}

// race redeems one code three times concurrently. One request wins. As the other requests were also
// valid, the resulting grant is revoked (AS-91).
func (c *client) race() error {
	fresh := &client{cluster: c.cluster, person: c.person, rand: c.rand}
	if err := fresh.register(); err != nil {
		return err
	}
	code, _, err := fresh.authorize()
	if err != nil {
		return err
	}
	const n = 3
	var outs [n]oauth.TokenResponse
	var answers [n]answer
	var errs [n]error
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { outs[i], answers[i], errs[i] = fresh.exchange(code) })
	}
	wg.Wait()
	c.raced.Add(1)
	winners, doubtful := 0, false
	for i, err := range errs {
		switch {
		case err == nil:
			winners++
			fresh.access, fresh.refresh = outs[i].AccessToken, outs[i].RefreshToken
		case !errors.Is(err, errRefused):
			return err
		}
		doubtful = doubtful || answers[i].doubtful
	}
	if winners > 1 || winners == 0 && !doubtful {
		c.breach(oneWinner, "a code had %d winners: %v", winners, errs)
	}
	if winners == 1 {
		fresh.mustBeDead(oneWinner)
	}
	return nil
}

// reuseLate presents a token that was used longer ago than the grace.
func (c *client) reuseLate() {
	// A grant remembers the rotation times of its last eight tokens. For a busy client, all of them
	// must be old.
	pause(c.grace + time.Second)
	if _, err := c.renew(c.refresh); err != nil { // the grant is valid until then
		return
	}
	c.reused.Add(1)
	a, err := c.send(c.rotation(c.spent))
	if err != nil || a.status != http.StatusBadRequest {
		c.breach(reuse, "got %d %.200s, %v", a.status, a.body, err)
	}
	c.mustBeDead(reuse)
}
