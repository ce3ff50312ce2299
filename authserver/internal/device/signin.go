package device

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// SignInTTL is how long a user may sign a browser in from another device (PE-15).
const SignInTTL = 5 * time.Minute

// BrowserRequestStore lists the storage methods that BrowserRequests uses.
type BrowserRequestStore interface {
	storage.RemoteSignIns
	storage.Failures
}

// BrowserRequests handles the requests of browsers to be signed in from another device. It is safe
// for concurrent use.
type BrowserRequests struct {
	Store BrowserRequestStore
	// MAC hides short codes from readers of the database.
	MAC    func(purpose, code string) storage.Hash
	Limits *allowance.Limits
	Audit  *audit.Recorder
	Now    func() time.Time

	begun   beginnings
	asked   *bounded.Limiter[string]
	guesses guesses
}

// Limits of a browser's polls for the decision. Pages poll every few seconds.
const (
	answers = 1  // a second
	atOnce  = 10 // burst, for all tabs together
)

// NewBrowserRequests returns a BrowserRequests.
func NewBrowserRequests(s BrowserRequests) *BrowserRequests {
	s.begun, s.guesses = newBeginnings(s.Limits, "sign-ins of browsers"), guesses{s.Store, s.Audit, s.Now}
	s.asked = bounded.NewLimiter[string](networks, s.Now)
	return &s
}

// Browser is a browser that asks to be signed in.
type Browser struct {
	Agent    string   // its readable name
	Address  string   // source address
	Networks []string // its networks, for the limits
}

// Asked is a request in the form that the browser keeps.
type Asked struct {
	Secret  string `json:"s"`
	Code    string `json:"c"`
	Expires int64  `json:"e"` // seconds since the epoch
}

// Hash returns the stored form of the secret.
func (a Asked) Hash() storage.Hash { return secrets.Hash(a.Secret) }

// Begin stores the request of a browser. Its error is an *oauth.Error.
func (q *BrowserRequests) Begin(ctx context.Context, b Browser) (Asked, error) {
	crowded := sentence.New("Too many people are signing in at once.", "sign_ins")
	if err := q.begun.take(ctx, b.Networks, crowded); err != nil {
		return Asked{}, err
	}
	now := q.Now()
	until := now.Add(SignInTTL).Truncate(time.Second)
	a := Asked{Secret: secrets.Token(""), Expires: until.Unix()}
	r := storage.RemoteSignIn{
		Secret: a.Hash(), Agent: b.Agent, Address: b.Address, CreatedAt: now, ExpiresAt: until,
	}
	err := storage.ErrExists
	for try := 0; try < codeTries && errors.Is(err, storage.ErrExists); try++ {
		a.Code = newSignInCode()
		r.Code = q.hash(a.Code)
		err = q.Store.PutRemoteSignIn(ctx, r)
	}
	if err != nil {
		return Asked{}, refusal.Unavailable(err)
	}
	q.Audit.Record(ctx, audit.RemoteRequested, slog.String("agent", b.Agent))
	return a, nil
}

func (q *BrowserRequests) hash(code string) storage.Hash { return q.MAC("remote sign-in code", code) }

// Number returns the two digits that a waiting browser shows beside its code. Links and pictures do
// not contain them, so a user who only received one of these does not know them.
func (q *BrowserRequests) Number(code string) string {
	h := q.MAC("remote sign-in number", Read(code))
	return strconv.FormatUint(10+binary.BigEndian.Uint64(h[:])%90, 10)
}

// Held returns the request of a browser. It returns ErrWrong if the browser has no waiting request,
// ErrThrottled if it polls too often, or an *oauth.Error.
func (q *BrowserRequests) Held(ctx context.Context, a Asked) (storage.RemoteSignIn, error) {
	if a.Expires <= q.Now().Unix() {
		return storage.RemoteSignIn{}, ErrWrong
	}
	draw := bounded.Draw[string]{Key: a.Secret, Rate: bounded.PerSecond(answers, atOnce)}
	if q.asked.Take(draw) != 0 {
		return storage.RemoteSignIn{}, ErrThrottled
	}
	r, err := q.Store.RemoteSignIn(ctx, a.Hash(), q.Now())
	return r, waiting(err)
}

// Find returns the request for a typed code. Its error is ErrWrong, ErrThrottled or an
// *oauth.Error.
func (q *BrowserRequests) Find(ctx context.Context, typed string, g Guesser) (r storage.RemoteSignIn, err error) {
	code := Read(typed)
	err = q.guesses.look(ctx, code, g, func() (err error) {
		r, err = q.Store.RemoteSignInByCode(ctx, q.hash(code), q.Now())
		return err
	})
	return r, err
}

// Approve lets the approving session sign in the browser of a request. It returns ErrSignedOut if
// the session has ended, ErrWrong if the request was decided or has expired, or an *oauth.Error.
func (q *BrowserRequests) Approve(ctx context.Context, secret, approver storage.Hash) error {
	return q.decide(ctx, secret, &approver)
}

// Deny denies a browser's request. Its errors are the same as for Approve.
func (q *BrowserRequests) Deny(ctx context.Context, secret storage.Hash) error {
	return q.decide(ctx, secret, nil)
}

func (q *BrowserRequests) decide(ctx context.Context, secret storage.Hash, approver *storage.Hash) error {
	return decided(q.Store.DecideRemoteSignIn(ctx, secret, approver, q.Now()))
}

// Collect begins the session of a browser whose request was approved, once. Its errors are the same
// as for Approve.
func (q *BrowserRequests) Collect(ctx context.Context, a Asked, s storage.Session) error {
	return decided(q.Store.CollectRemoteSignIn(ctx, a.Hash(), s, q.Now()))
}

// ErrSignedOut reports that the approving session has ended.
var ErrSignedOut = errors.New("device: the session that approves has ended")

func decided(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrNotFound):
		return ErrSignedOut
	case errors.Is(err, storage.ErrSpent), errors.Is(err, storage.ErrExpired):
		return ErrWrong
	}
	return refusal.Unavailable(err)
}

// Waiting is Find for a code that was found before. It does not count as a guess.
func (q *BrowserRequests) Waiting(ctx context.Context, code string) (storage.RemoteSignIn, error) {
	r, err := q.Store.RemoteSignInByCode(ctx, q.hash(Read(code)), q.Now())
	return r, waiting(err)
}
