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

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
)

const (
	maxBody = 64 << 10
	// junkAllowed limits how many deliveries per second are refused with a reason and a log entry,
	// for each source and for all unknown issuers together. The burst is ten times as large.
	junkAllowed = 20
	maxSources  = 1024 // with separate limits
	retryAfter  = "5"  // seconds
)

// Source is an issuer whose events are accepted. They affect only sessions and grants that depend
// on the issuer.
type Source interface {
	// Name returns the source's name for the log.
	Name() string
	// Policy returns the requirements for its deliveries and tokens.
	Policy() Policy
	// Verify checks the signature of a token with this issuer's keys alone and returns its payload.
	// It returns ErrKey for a wrong signature and ErrUnavailable if the keys are unavailable.
	Verify(ctx context.Context, raw string) (payload []byte, err error)
	// End executes an order and records its token as used, both or neither. It returns how many
	// sessions or grants ended, or ErrRepeated if the token was used before.
	End(ctx context.Context, o Order) (ended int, err error)
}

// Policy contains the requirements for a source's deliveries and tokens.
type Policy struct {
	Issuer string
	// Issuers lists the accepted issuers of subjects: Issuer, and the issuer that users sign in at,
	// if different.
	Issuers  []string
	Audience []string // a token must name one of these
	Bearer   string   // token that the transmitter must present; "": none
}

// Order describes the effect of a token.
type Order struct {
	ID       string // ID of the token, unique within its source
	Reason   Reason
	Targets  []Target
	At       time.Time // time of the event
	Until    time.Time // later sessions are not affected; slightly after At to allow for clock differences
	ForgetAt time.Time // when the ID need not be remembered any longer
}

// Sources finds the sources of an issuer. An empty result without an error means that the issuer is
// unknown.
type Sources interface {
	Sources(ctx context.Context, issuer string) ([]Source, error)
}

// Receiver is the endpoint that issuers push tokens to (RFC 8935, AS-245).
type Receiver struct {
	sources []Sources
	log     *slog.Logger
	audit   *audit.Recorder
	now     func() time.Time
	junk    *bounded.Limiter[string]
}

// NewReceiver returns a receiver for the issuers of all sources.
func NewReceiver(log *slog.Logger, rec *audit.Recorder, now func() time.Time, sources ...Sources) *Receiver {
	return &Receiver{
		sources: sources, log: log, audit: rec, now: now, junk: bounded.NewLimiter[string](maxSources, now),
	}
}

// ServeHTTP implements http.Handler. It answers 202 if a token is processed, was processed before,
// or requires no action. It answers 400 for a permanent refusal, 429 if there are too many of them,
// and 503 if the transmitter should retry.
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

// write writes the error response of RFC 8935 §2.3.
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

// bearer returns the token of the Authorization header (RFC 6750 §2.1), or "" if the header has
// another form.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if len(r.Header.Values("Authorization")) != 1 || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

// receive checks and executes a token. It returns the name of its source as soon as that is known.
// If several sources share the issuer, each source that accepts the token executes it.
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
			return name, err // the transmitter retries, and finished parts are not repeated
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

// hear checks a token for one source, and executes it.
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

// carryOut executes an accepted token.
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

// same compares in constant time, for any lengths.
func same(want, got string) bool {
	a, b := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(got))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
