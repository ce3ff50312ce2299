package authserver

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Status lists let resource servers that validate tokens locally see revoked grants (OAuth Token
// Status List). Each access token contains its index, a bit in a list; a resource server fetches
// the list regularly. A list costs a query of an index that contains only the revoked grants, and
// is mostly zeros.
const (
	statusListSize = 1 << 17 // grants in a list: 16 KB before compression
	statusListMax  = 1 << 32 // lists, the maximum for an index
	statusFresh    = time.Second
	statusType     = "statuslist+jwt"
)

func statusURI(issuer string, list int64) string {
	return issuer + "/status/" + strconv.FormatInt(list, 10)
}

// statusLists creates and caches the lists. Every replica creates the same bytes of a list until it
// changes: signatures are deterministic, and a list's times come from a window that all replicas
// share. So a cache, or a resource server behind a load balancer, gets "not modified" from any of
// them.
type statusLists struct {
	issuer string
	store  storage.Lookups
	keys   *keys.Manager
	ttl    time.Duration // cache time for resource servers
	now    func() time.Time
	flight singleflight.Group
	// empty returns a packed list without revoked grants. Packing uses almost a megabyte, and
	// anyone may request lists that contain no grants at all.
	empty func() string
	shelf statusShelf
}

func newStatusLists(c Config, k *keys.Manager) *statusLists {
	return &statusLists{
		issuer: c.Issuer, store: c.Store, keys: k, ttl: c.Tokens.StatusTTL, now: c.Now,
		shelf: newStatusShelf(statusBudget),
		empty: sync.OnceValue(func() string { return pack(make([]byte, statusListSize/8)) }),
	}
}

// claim returns the status claim for a grant's index, or nil for none.
func (l *statusLists) claim(index int64) *oauth.Status {
	if l.ttl <= 0 || index <= 0 {
		return nil
	}
	return &oauth.Status{List: oauth.StatusReference{
		Index: index % statusListSize, URI: statusURI(l.issuer, index/statusListSize),
	}}
}

// statusList is a signed list. It is served as long as its grants and the published keys are
// unchanged and its window lasts.
type statusList struct {
	token         []byte
	etag          string
	content, keys string // digests
	quiet         bool   // without revoked grants
	begun         time.Time
	checked       time.Time
}

// statusClaims are the claims of a status list token, in the order of the draft (§5.1).
type statusClaims struct {
	Subject  string     `json:"sub"` // REQUIRED: the URI of the list
	IssuedAt int64      `json:"iat"` // REQUIRED
	Expires  int64      `json:"exp"` // RECOMMENDED: no copy is valid after it
	TTL      int64      `json:"ttl"` // RECOMMENDED: seconds until the next fetch
	Issuer   string     `json:"iss"`
	List     statusBits `json:"status_list"` // REQUIRED
}

type statusBits struct {
	Bits int    `json:"bits"` // REQUIRED: 1 for each grant, 0: valid, 1: invalid
	List string `json:"lst"`  // REQUIRED: zlib, base64url; the lowest bit of a byte is the first
}

// get returns a list that is at most statusFresh old.
func (l *statusLists) get(ctx context.Context, n int64) (*statusList, error) {
	e := l.shelf.get(n)
	if e != nil && l.now().Sub(e.checked) < statusFresh {
		return e, nil
	}
	v, err, _ := l.flight.Do(strconv.FormatInt(n, 10), func() (any, error) {
		fresh, err := l.load(context.WithoutCancel(ctx), n, e)
		if err == nil {
			l.shelf.put(n, fresh)
		}
		return fresh, err
	})
	if err != nil {
		return nil, err
	}
	return v.(*statusList), nil
}

// TryStatusList creates a status list, and returns the error if it cannot be created: resource
// servers that read lists then miss revocations. It returns nil if status lists are disabled.
func (s *Server) TryStatusList(ctx context.Context) error {
	if s.status.ttl <= 0 {
		return nil
	}
	_, err := s.status.get(ctx, 0)
	return err
}

// life returns how long a copy of a list is valid.
func (l *statusLists) life() time.Duration {
	return max(10*l.ttl, 10*time.Minute).Truncate(2 * time.Second)
}

// window returns when the current list began if it is unchanged. A new one begins when half of its
// life is left, at a different time for each list.
func (l *statusLists) window(n int64, now time.Time) time.Time {
	half := int64(l.life() / (2 * time.Second))
	shift := n * 61 % half
	return time.Unix((now.Unix()+shift)/half*half-shift, 0)
}

// load creates a list, or confirms the old one.
func (l *statusLists) load(ctx context.Context, n int64, old *statusList) (*statusList, error) {
	now := l.now()
	from := n * statusListSize
	revoked, err := l.store.RevokedGrants(ctx, from, from+statusListSize)
	if err != nil {
		return nil, err
	}
	_, published, err := l.keys.JWKS(ctx)
	if err != nil {
		return nil, err
	}
	fresh := statusList{
		content: digest(revoked), keys: published, quiet: len(revoked) == 0, begun: l.window(n, now), checked: now,
	}
	if old != nil && old.content == fresh.content && old.keys == published && old.begun.Equal(fresh.begun) {
		fresh.token, fresh.etag = old.token, old.etag
		return &fresh, nil
	}
	token, err := l.sign(ctx, n, l.packed(revoked, from), fresh.begun)
	if err != nil {
		return nil, err
	}
	tag := sha256.Sum256([]byte(token))
	fresh.token, fresh.etag = []byte(token), `"`+base64.RawURLEncoding.EncodeToString(tag[:16])+`"`
	return &fresh, nil
}

// digest returns the digest of a list's revoked grants.
func digest(revoked []int64) string {
	if len(revoked) == 0 {
		return ""
	}
	b := make([]byte, 0, 8*len(revoked))
	for _, i := range revoked {
		b = binary.BigEndian.AppendUint64(b, uint64(i))
	}
	sum := sha256.Sum256(b)
	return string(sum[:])
}

func (l *statusLists) packed(revoked []int64, from int64) string {
	if len(revoked) == 0 {
		return l.empty()
	}
	bits := make([]byte, statusListSize/8)
	for _, i := range revoked {
		bits[(i-from)/8] |= 1 << ((i - from) % 8)
	}
	return pack(bits)
}

// pack compresses a list into the form for its token.
func pack(bits []byte) string {
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	z.Write(bits) // to memory, which never fails
	z.Close()
	return base64.RawURLEncoding.EncodeToString(packed.Bytes())
}

func (l *statusLists) sign(ctx context.Context, n int64, packed string, begun time.Time) (string, error) {
	return l.keys.Sign(ctx, statusType, statusClaims{
		Subject: statusURI(l.issuer, n), IssuedAt: begun.Unix(), Expires: begun.Add(l.life()).Unix(),
		TTL: int64(l.ttl / time.Second), Issuer: l.issuer,
		List: statusBits{1, packed},
	})
}

// handleStatus serves GET /status/{list}. It is public: a list reveals how many grants were revoked
// recently, but not whose.
func (s *Server) handleStatus(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.ParseInt(r.PathValue("list"), 10, 64)
	if err != nil || n < 0 || n >= statusListMax {
		http.NotFound(w, r)
		return
	}
	list, err := s.status.get(r.Context(), n)
	if err != nil {
		s.writeError(w, r, refusal.Unavailable(err))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/"+statusType)
	h.Set("Cache-Control", "public, max-age="+strconv.FormatInt(statusMaxAge(s.cfg.Tokens.StatusTTL), 10))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("ETag", list.etag)
	if metadata.MatchesETag(r.Header.Get("If-None-Match"), list.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(http.StatusOK)
	w.Write(list.token)
}

// statusMaxAge returns the cache lifetime in seconds. It adds to the delay of a revocation, so it
// is a small part of the resource servers' cache time. One second is enough to merge thousands of
// requests into one.
func statusMaxAge(ttl time.Duration) int64 { return max(int64(ttl/(8*time.Second)), 1) }
