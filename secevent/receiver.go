package secevent

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
)

const (
	maxBody = 64 << 10
	// junkAllowed bounds how many deliveries of each source, and of all that are by no issuer that is
	// known, are refused a second with a reason and a line in the log; ten times that at once.
	junkAllowed = 20
	maxSources  = 1024 // for which that is counted apart
	retryAfter  = "5"  // seconds
)

// Source is an issuer whose events are believed, for what rests on it and nothing else.
type Source interface {
	// Name is what the log calls it.
	Name() string
	// Policy says what its deliveries and tokens have to say.
	Policy() Policy
	// Verify checks the signature of a token by the keys of this issuer alone, and returns its
	// payload. ErrKey; ErrUnavailable when the keys cannot be had now.
	Verify(ctx context.Context, raw string) (payload []byte, err error)
	// End carries out an order and records that its token was used, both or neither, and returns how
	// much has ended. ErrRepeated when it was used before.
	End(ctx context.Context, o Order) (ended int, err error)
}

// Policy is what a source's deliveries and tokens have to say.
type Policy struct {
	Issuer string
	// Issuers are those of subjects: Issuer, and the one at which people sign in, where it is another.
	Issuers  []string
	Audience []string // one of these
	Bearer   string   // that the transmitter presents; "": none
}

// Order is what a token ends.
type Order struct {
	ID       string // of the token, unique within its source
	Reason   Reason
	Targets  []Target
	At       time.Time // when it happened
	Until    time.Time // what began later is not meant; a little after At, as clocks may differ
	ForgetAt time.Time // from when on the ID need not be known any more
}

// Sources finds the sources of an issuer. None and no error: the issuer is not known.
type Sources interface {
	Sources(ctx context.Context, issuer string) ([]Source, error)
}

// Receiver is the endpoint to which issuers push their tokens (RFC 8935, AS-245).
type Receiver struct {
	sources []Sources
	log     *slog.Logger
	audit   *audit.Recorder
	now     func() time.Time
	junk    *bounded.Limiter[string]
}

// NewReceiver returns a receiver for the issuers that any of the sources knows.
func NewReceiver(log *slog.Logger, rec *audit.Recorder, now func() time.Time, sources ...Sources) *Receiver {
	return &Receiver{
		sources: sources, log: log, audit: rec, now: now, junk: bounded.NewLimiter[string](maxSources, now),
	}
}

// ServeHTTP implements http.Handler. It answers 202 when a token is carried out, was carried out
// before, or asks for nothing; 400 when it is refused permanently, and 503 when it should come again.
func (rc *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	raw, err := delivered(w, r)
	source := ""
	if err == nil {
		source, err = rc.receive(r.Context(), raw, bearer(r))
	}
	refused := (*Error)(nil)
	switch {
	case err == nil:
		w.WriteHeader(http.StatusAccepted)
	case rc.tooMany(source):
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case !errors.As(err, &refused):
		rc.log.LogAttrs(r.Context(), slog.LevelWarn, "a security event cannot be judged now",
			slog.String("source", source), slog.Any("cause", err))
		w.Header().Set("Retry-After", retryAfter)
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		rc.audit.Record(r.Context(), audit.SecurityEventRefused, slog.String("source", source),
			slog.String("error", string(refused.Code)), slog.String("reason", refused.Why))
		refused.write(w)
	}
}

func (rc *Receiver) tooMany(source string) bool {
	return rc.junk.Take(bounded.Draw[string]{Key: source, Rate: bounded.PerSecond(junkAllowed, 10*junkAllowed)}) > 0
}

// write answers with what RFC 8935 §2.3 says.
func (e *Error) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Language", "en")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(struct {
		Err         Code   `json:"err"`
		Description string `json:"description"`
	}{e.Code, e.Why})
}

// delivered reads the token of a request (RFC 8935 §2.1).
func delivered(w http.ResponseWriter, r *http.Request) (string, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/"+Type {
		return "", refuse(InvalidRequest, "its media type is not application/secevent+jwt")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return "", refuse(InvalidRequest, "its body was cut off, or is larger than 64 KiB")
	}
	return strings.TrimSpace(string(body)), nil
}

// bearer is the token of the Authorization header (RFC 6750 §2.1); "" when it has another form.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if len(r.Header.Values("Authorization")) != 1 || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

// receive judges a token and carries it out, and returns the name of its source as soon as that is
// known. Where several sources have one issuer, each that believes the token carries it out.
func (rc *Receiver) receive(ctx context.Context, raw, presented string) (name string, err error) {
	iss, err := Issuer(raw)
	if err != nil {
		return "", err
	}
	known, err := rc.of(ctx, iss)
	if err != nil {
		return "", err
	}
	if len(known) == 0 {
		return "", refuse(InvalidIssuer, "it is by an issuer that is not known here")
	}
	var refused error
	believed := false
	for _, s := range known {
		name = s.Name()
		switch err := rc.hear(ctx, s, raw, presented); {
		case errors.As(err, new(*Error)):
			refused = err
		case err != nil:
			return name, err // the whole of it comes again; what is done is not done twice
		default:
			believed = true
		}
	}
	if believed {
		return name, nil
	}
	return name, refused
}

func (rc *Receiver) of(ctx context.Context, issuer string) (out []Source, err error) {
	for _, s := range rc.sources {
		some, err := s.Sources(ctx, issuer)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// hear judges a token as one source's, and carries it out.
func (rc *Receiver) hear(ctx context.Context, s Source, raw, presented string) error {
	p := s.Policy()
	if p.Bearer != "" && !same(p.Bearer, presented) {
		return refuse(AuthenticationFailed, "the transmitter does not present the token that it was given")
	}
	payload, err := s.Verify(ctx, raw)
	switch {
	case errors.Is(err, ErrKey):
		return refuse(InvalidKey, "its signature is by no key of its issuer")
	case err != nil:
		return err
	}
	t, err := Parse(payload)
	if err != nil {
		return err
	}
	if err := t.Check(Expected{Issuer: p.Issuer, Audience: p.Audience, Issuers: p.Issuers, Now: rc.now()}); err != nil {
		return err
	}
	return rc.carryOut(ctx, s, t)
}

// carryOut does what a token that is believed asks for.
func (rc *Receiver) carryOut(ctx context.Context, s Source, t Token) error {
	outcome, ended := "nothing to do", 0
	if t.Reason != "" {
		var err error
		ended, err = s.End(ctx, Order{
			ID: t.ID, Reason: t.Reason, Targets: t.Targets, At: t.At, Until: t.At.Add(Leeway),
			ForgetAt: t.ForgetAt(),
		})
		switch {
		case errors.Is(err, ErrRepeated):
			outcome = "repeated"
		case err != nil:
			return err
		default:
			outcome = "carried out"
		}
	}
	var names []string
	for _, uri := range t.Events {
		names = append(names, Name(uri))
	}
	rc.audit.Record(ctx, audit.SecurityEventReceived, slog.String("source", s.Name()),
		slog.String("what", strings.Join(names, " ")), slog.String("token_id", t.ID),
		slog.String("outcome", outcome), slog.Int("sessions", ended))
	return nil
}

// same compares in constant time, whatever the lengths.
func same(want, got string) bool {
	a, b := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(got))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
