package storagetest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// node returns a node below another node or the grant, valid for ten minutes, not stored yet.
func (e *env) node(a storage.Approval, parent storage.Node) storage.Node {
	return storage.Node{
		ID: secrets.ID("nod_"), GrantID: a.Grant.ID, ParentID: parent.ID, Name: "reader", Scopes: oauth.Scopes{"mcp"},
		CreatedAt: e.now, ExpiresAt: e.now.Add(10 * time.Minute),
	}
}

func (e *env) addNode(t testing.TB, a storage.Approval, parent storage.Node) storage.Node {
	t.Helper()
	n, err := e.s.AddNode(e.ctx, e.node(a, parent))
	check(t, err)
	return n
}

// wantNode checks whether the tokens of a node are active, by introspection and in the status
// lists.
func (e *env) wantNode(t testing.TB, n storage.Node, live bool) {
	t.Helper()
	st, err := e.s.TokenActive(e.ctx, storage.TokenKey{TokenID: "t", GrantID: n.GrantID, NodeID: n.ID, Now: e.now})
	check(t, err)
	if st.Active != live {
		t.Errorf("the token of %s (depth %d): got active %v, want %v", n.ID, n.Depth, st.Active, live)
	}
	listed, err := e.s.RevokedGrants(e.ctx, n.StatusIndex, n.StatusIndex+1)
	check(t, err)
	if got := slices.Contains(listed, n.StatusIndex); got == live {
		t.Errorf("the status list says of %s (depth %d): revoked %v, want %v", n.ID, n.Depth, got, !live)
	}
}

func (e *env) wantNodes(t testing.TB, a storage.Approval, want ...storage.Node) {
	t.Helper()
	got, err := e.s.Nodes(e.ctx, []string{"grt_other", a.Grant.ID}, e.now)
	check(t, err)
	same(t, got, want)
}

// nodes checks delegation to sub-agents, and its end (AS-243).
func nodes(t *testing.T, e *env) {
	t.Run("AS-243 a node is stored below its grant, and below another node", func(t *testing.T) { addedNodes(t, e) })
	t.Run("AS-243 the depth is bounded", func(t *testing.T) { deepNodes(t, e) })
	t.Run("AS-243 the number is bounded, and cut ones count until they expire", func(t *testing.T) { manyNodes(t, e) })
	t.Run("AS-243 no node outlives what is above it", func(t *testing.T) { shortNodes(t, e) })
	t.Run("AS-243 cutting the middle cuts what is below it, and nothing else", func(t *testing.T) { cutNodes(t, e) })
	t.Run("AS-243 what ends a grant ends its nodes", func(t *testing.T) { endedNodes(t, e) })
	t.Run("AS-243 a node is one of its grant only", func(t *testing.T) { foreignNodes(t, e) })
	t.Run("a node goes when it has expired", func(t *testing.T) { sweptNodes(t, e) })
	t.Run("a grant is found by its id, until it is swept", func(t *testing.T) { foundGrants(t, e) })
}

func addedNodes(t *testing.T, e *env) {
	a, _ := e.granted(t)
	first := e.node(a, storage.Node{})
	got, err := e.s.AddNode(e.ctx, first)
	check(t, err)
	if got.StatusIndex <= storage.FirstNodeIndex {
		t.Errorf("got the place %d, want one that no grant has", got.StatusIndex)
	}
	first.Depth, first.StatusIndex = 1, got.StatusIndex
	same(t, got, first)
	second := e.addNode(t, a, first)
	same(t, second.Depth, 2)
	if second.StatusIndex == first.StatusIndex {
		t.Error("two nodes have one place in the status lists")
	}
	e.wantNodes(t, a, first, second)
	e.wantNode(t, first, true)
	e.wantNode(t, second, true)
	unknown := e.node(a, storage.Node{})
	unknown.GrantID = "grt_unknown"
	_, err = e.s.AddNode(e.ctx, unknown)
	wantErr(t, err, storage.ErrNotFound)
	if _, err = e.s.AddNode(e.ctx, storage.Node{}); err == nil {
		t.Error("a node of no grant was stored")
	}
	none, err := e.s.Nodes(e.ctx, nil, e.now)
	check(t, err)
	same(t, len(none), 0)
}

func deepNodes(t *testing.T, e *env) {
	a, _ := e.granted(t)
	var n storage.Node
	for range storage.MaxNodeDepth {
		n = e.addNode(t, a, n)
	}
	same(t, n.Depth, storage.MaxNodeDepth)
	_, err := e.s.AddNode(e.ctx, e.node(a, n))
	wantErr(t, err, storage.ErrDeep)
}

func manyNodes(t *testing.T, e *env) {
	a, _ := e.granted(t)
	var all []storage.Node
	for range storage.MaxNodes {
		all = append(all, e.addNode(t, a, storage.Node{}))
	}
	n := e.node(a, storage.Node{})
	_, err := e.s.AddNode(e.ctx, n)
	wantErr(t, err, storage.ErrFull)
	_, err = e.s.CutNode(e.ctx, all[0].ID, a.Grant.ID, e.now)
	check(t, err)
	_, err = e.s.AddNode(e.ctx, n)
	wantErr(t, err, storage.ErrFull)
	n.CreatedAt = all[0].ExpiresAt
	n.ExpiresAt = n.CreatedAt.Add(time.Minute)
	_, err = e.s.AddNode(e.ctx, n)
	check(t, err)
	other, _ := e.granted(t)
	e.addNode(t, other, storage.Node{})
}

func shortNodes(t *testing.T, e *env) {
	a, _ := e.granted(t)
	n := e.node(a, storage.Node{})
	n.ExpiresAt = a.Grant.ExpiresAt.Add(time.Millisecond)
	_, err := e.s.AddNode(e.ctx, n)
	wantErr(t, err, storage.ErrExpired)
	parent := e.addNode(t, a, storage.Node{})
	child := e.node(a, parent)
	child.ExpiresAt = parent.ExpiresAt.Add(time.Millisecond)
	_, err = e.s.AddNode(e.ctx, child)
	wantErr(t, err, storage.ErrExpired)
	child.CreatedAt, child.ExpiresAt = parent.ExpiresAt, parent.ExpiresAt.Add(time.Minute)
	_, err = e.s.AddNode(e.ctx, child)
	wantErr(t, err, storage.ErrExpired)
	at := func(now time.Time) bool {
		st, err := e.s.TokenActive(e.ctx, storage.TokenKey{GrantID: a.Grant.ID, NodeID: parent.ID, Now: now})
		check(t, err)
		return st.Active
	}
	if !at(parent.ExpiresAt.Add(-time.Millisecond)) || at(parent.ExpiresAt) {
		t.Error("a node is live until the very instant of its expiry")
	}
}

func cutNodes(t *testing.T, e *env) {
	a, _ := e.granted(t)
	top := e.addNode(t, a, storage.Node{})
	middle := e.addNode(t, a, top)
	low := e.addNode(t, a, middle)
	lowest := e.addNode(t, a, low)
	beside := e.addNode(t, a, top)
	for range 2 { // repeating it is not an error
		n, err := e.s.CutNode(e.ctx, middle.ID, "", e.now)
		check(t, err)
		want := middle
		want.CutAt = e.now
		same(t, n, want)
	}
	for _, n := range []storage.Node{middle, low, lowest} {
		e.wantNode(t, n, false)
	}
	for _, n := range []storage.Node{top, beside} {
		e.wantNode(t, n, true)
	}
	e.wantNodes(t, a, top, beside)
	for _, parent := range []storage.Node{middle, low} {
		_, err := e.s.AddNode(e.ctx, e.node(a, parent))
		wantErr(t, err, storage.ErrRevoked)
	}
	e.wantLive(t, a, true)
	_, err := e.s.CutNode(e.ctx, "nod_unknown", "", e.now)
	wantErr(t, err, storage.ErrNotFound)
	_, err = e.s.CutNode(e.ctx, top.ID, "", top.ExpiresAt)
	wantErr(t, err, storage.ErrNotFound)
}

func endedNodes(t *testing.T, e *env) {
	for name, c := range map[string]struct {
		end  func(a storage.Approval) error
		want error
	}{
		"the end of the grant": {func(a storage.Approval) error {
			return e.s.RevokeGrant(e.ctx, a.Grant.ID, storage.ByOperator, e.now)
		}, storage.ErrRevoked},
		"a pause": {func(a storage.Approval) error {
			return e.s.PauseGrant(e.ctx, a.Grant.UserID, a.Grant.ID, e.now)
		}, storage.ErrPaused},
		"a person who is disabled": {func(a storage.Approval) error {
			return e.s.SetUserDisabled(e.ctx, a.Grant.UserID, true, e.now)
		}, storage.ErrRevoked},
		"a cut by one row": {func(a storage.Approval) error {
			_, err := e.s.CutGrants(e.ctx, storage.Selection{UserID: a.Grant.UserID}, storage.ByOperator, e.now)
			return err
		}, storage.ErrRevoked},
		"a client that is deleted": {func(a storage.Approval) error {
			return e.s.DeleteClient(e.ctx, a.Grant.ClientID, e.now)
		}, storage.ErrRevoked},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := e.granted(t)
			top := e.addNode(t, a, storage.Node{})
			low := e.addNode(t, a, top)
			check(t, c.end(a))
			e.wantNode(t, top, false)
			e.wantNode(t, low, false)
			_, err := e.s.AddNode(e.ctx, e.node(a, storage.Node{}))
			wantErr(t, err, c.want)
		})
	}
	t.Run("a pause that is over", func(t *testing.T) {
		a, _ := e.granted(t)
		n := e.addNode(t, a, storage.Node{})
		check(t, e.s.PauseGrant(e.ctx, a.Grant.UserID, a.Grant.ID, e.now))
		check(t, e.s.ResumeGrant(e.ctx, a.Grant.UserID, a.Grant.ID, e.now))
		e.wantNode(t, n, true)
	})
}

func foreignNodes(t *testing.T, e *env) {
	a, _ := e.granted(t)
	b, _ := e.granted(t)
	n := e.addNode(t, a, storage.Node{})
	_, err := e.s.AddNode(e.ctx, e.node(b, n))
	wantErr(t, err, storage.ErrNotFound)
	_, err = e.s.CutNode(e.ctx, n.ID, b.Grant.ID, e.now)
	wantErr(t, err, storage.ErrNotFound)
	for _, grant := range []string{b.Grant.ID, ""} {
		st, err := e.s.TokenActive(e.ctx, storage.TokenKey{GrantID: grant, NodeID: n.ID, Now: e.now})
		check(t, err)
		same(t, st.Active, false)
	}
	e.wantNode(t, n, true)
}

func sweptNodes(t *testing.T, e *env) {
	a, _ := e.granted(t)
	n := e.addNode(t, a, storage.Node{})
	_, err := e.s.CutNode(e.ctx, n.ID, "", e.now)
	check(t, err)
	later := n.ExpiresAt.Add(-time.Millisecond)
	e.sweepAll(t, later)
	e.wantNode(t, n, false)
	e.sweepAll(t, n.ExpiresAt)
	listed, err := e.s.RevokedGrants(e.ctx, n.StatusIndex, n.StatusIndex+1)
	check(t, err)
	same(t, len(listed), 0)
	if again := e.addNode(t, a, storage.Node{}); again.StatusIndex <= n.StatusIndex {
		t.Error("a place in the status lists was given twice")
	}
}

func foundGrants(t *testing.T, e *env) {
	a, _ := e.granted(t)
	for range 2 {
		g, err := e.s.Grant(e.ctx, a.Grant.ID)
		check(t, err)
		same(t, g.ClientID, a.Grant.ClientID)
		check(t, e.s.RevokeGrant(e.ctx, a.Grant.ID, storage.ByOperator, e.now))
	}
	e.sweepAll(t, e.now.Add(25*time.Hour))
	_, err := e.s.Grant(e.ctx, a.Grant.ID)
	wantErr(t, err, storage.ErrNotFound)
}

// raceAddNode adds more nodes than the limit allows.
func raceAddNode(t *testing.T, e *env) {
	const room = 5
	a, _ := e.granted(t)
	for range storage.MaxNodes - room {
		e.addNode(t, a, storage.Node{})
	}
	var c tally
	compete(func(int) {
		_, err := e.s.AddNode(e.ctx, e.node(a, storage.Node{}))
		c.add(err, storage.ErrFull)
	})
	c.want(t, room)
	all, err := e.s.Nodes(e.ctx, []string{a.Grant.ID}, e.now)
	check(t, err)
	same(t, len(all), storage.MaxNodes)
}

// raceCutNode adds nodes below a node that is cut at the same time: none of them is live.
func raceCutNode(t *testing.T, e *env) {
	a, _ := e.granted(t)
	top := e.addNode(t, a, storage.Node{})
	middle := e.addNode(t, a, top)
	var mu sync.Mutex
	added := []storage.Node{top, middle}
	var c tally
	compete(func(i int) {
		if i == 0 {
			_, err := e.s.CutNode(e.ctx, top.ID, a.Grant.ID, e.now)
			c.add(err)
			return
		}
		n, err := e.s.AddNode(e.ctx, e.node(a, middle))
		c.add(err, storage.ErrRevoked)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			added = append(added, n)
		}
	})
	for _, n := range added {
		e.wantNode(t, n, false)
	}
	e.wantNodes(t, a)
}
