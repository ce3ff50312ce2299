package account

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcp-authd/mcp-authd/authserver/internal/binding"
	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// KeyMaker creates API keys for users' programs (PE-17). A key is listed, and revoked, like a
// connection.
type KeyMaker struct {
	Store    KeyStore
	Browsers *entry.Browsers
	Catalog  *catalogue.Catalogue
	Bindings binding.Checker
	Notices  *notice.Notifier
	Audit    *audit.Recorder
	Off      bool
	MaxTTL   time.Duration
	Now      func() time.Time
}

// KeyStore lists the storage methods that KeyMaker uses.
type KeyStore interface {
	storage.ProgramKeys
	Client(ctx context.Context, id string) (storage.Client, error)
	Connection(ctx context.Context, userID, id string, now time.Time) (storage.Connection, error)
}

// Errors for keys that are not created.
var (
	ErrKeyName  = errors.New("account: the name of a key must have 1 to 64 characters, all of them visible")
	ErrKeyLife  = errors.New("account: a key cannot live so long")
	ErrNoScope  = errors.New("account: no server or permission was chosen")
	ErrKeyWider = errors.New("account: a permission that cannot be given to a key")
	// ErrKeyMade reports that the form has created another key before.
	ErrKeyMade = errors.New("account: the form was used before")
)

// KeyForm is the content of the form that creates a key, sealed and bound to the browser. It
// contains the new key, so that a form that is sent twice creates one key and shows it again.
type KeyForm struct {
	UserID   string `json:"u"`
	ClientID string `json:"c"`
	Secret   string `json:"s"`
	GrantID  string `json:"g"`
	Resource string `json:"r"`
}

// KeyRequest is a user's choice for a new key.
type KeyRequest struct {
	Name   string
	Days   int
	Scopes oauth.Scopes
}

// KeyOffer is the content of the page for a new key.
type KeyOffer struct {
	Form      KeyForm
	Servers   []storage.Resource // to choose from
	Server    storage.Resource   // the chosen server; without a URI before the choice, or if there are no servers
	Permitted oauth.Scopes       // scopes of the server that the user may choose
	Days      []int              // possible lifetimes
}

// keyPrefix and secretPrefix show users and secret scanners the kind of a value.
const (
	keyPrefix    = "key_"
	secretPrefix = "mcpks_"
)

var errKeysOff = sentence.NewError(oauth.AccessDenied,
	"Keys for programs are turned off on this server. Ask its operator.", "keys_off")

// Offer returns the servers and scopes that the signed-in user may choose for a key. It returns the
// error of entry.Browsers.Owed if the session needs more authentication.
func (k *KeyMaker) Offer(ctx context.Context, token storage.Hash, server string) (o KeyOffer, err error) {
	if k.Off {
		return o, errKeysOff
	}
	v, err := k.Browsers.Acting(ctx, token, entry.Change)
	if err != nil {
		return o, err
	}
	catalog, err := k.Catalog.Load(ctx)
	if err != nil {
		return o, refusal.Unavailable(err)
	}
	o.Servers = catalog.Resources()
	if len(o.Servers) == 1 {
		server = o.Servers[0].URI
	}
	if o.Server, _ = catalog.Lookup(server); o.Server.URI == "" {
		return o, nil
	}
	o.Form = KeyForm{
		UserID: v.User.ID, ClientID: secrets.ID(keyPrefix), Secret: secrets.Token(secretPrefix),
		GrantID: secrets.ID("grt_"), Resource: o.Server.URI,
	}
	return k.complete(ctx, v, o)
}

// Again returns the offer for a form that created no key.
func (k *KeyMaker) Again(ctx context.Context, token storage.Hash, f KeyForm) (o KeyOffer, err error) {
	v, err := k.Browsers.ActingAs(ctx, token, f.UserID, entry.Change)
	if err != nil {
		return o, err
	}
	o.Form = f
	if o.Server, _, err = k.Catalog.Lookup(ctx, f.Resource); err != nil || o.Server.URI == "" {
		return o, err
	}
	return k.complete(ctx, v, o)
}

func (k *KeyMaker) complete(ctx context.Context, v storage.Visit, o KeyOffer) (KeyOffer, error) {
	o.Days = Lives(k.MaxTTL)
	var err error
	o.Permitted, err = k.permitted(ctx, v, o.Server)
	return o, err
}

// permitted returns the scopes of a resource that the user may have, the maximum for a key.
func (k *KeyMaker) permitted(ctx context.Context, v storage.Visit, r storage.Resource) (oauth.Scopes, error) {
	who := binding.Person{UserID: v.User.ID, UpstreamID: v.Session.UpstreamID}
	scopes, err := k.Bindings.Permit(ctx, who, r, policy.WithoutPerson(r, policy.ResourceScopes(r)))
	switch {
	case errors.Is(err, refusal.ErrNoScopes):
		return nil, nil
	case errors.Is(err, storage.ErrRevoked):
		return nil, entry.ErrAnotherPerson
	}
	return scopes, err
}

const day = 24 * time.Hour

// Lives returns the lifetimes to choose from, in days, up to the longest.
func Lives(longest time.Duration) (days []int) {
	last := int(longest / day)
	for _, d := range []int{1, 7, 30, 90, 180, 365} {
		if d < last {
			days = append(days, d)
		}
	}
	return append(days, last)
}

// MadeKey is a new key with its secret, which is shown only once.
type MadeKey struct {
	Client storage.Client
	Grant  storage.Grant
	Secret string
	Server storage.Resource
}

// Make creates the key of a form, once. It returns entry.ErrProve and entry.ErrMore like Offer,
// storage.ErrFull if the user has the maximum number of keys, or one of the errors above.
func (k *KeyMaker) Make(ctx context.Context, token storage.Hash, f KeyForm, r KeyRequest) (MadeKey, error) {
	if k.Off {
		return MadeKey{}, errKeysOff
	}
	v, err := k.Browsers.ActingAs(ctx, token, f.UserID, entry.Change)
	if err != nil {
		return MadeKey{}, err
	}
	made := MadeKey{Secret: f.Secret}
	var known bool
	if made.Server, known, err = k.Catalog.Lookup(ctx, f.Resource); err != nil {
		return MadeKey{}, err
	}
	if !known {
		return MadeKey{}, sentence.NewError(oauth.InvalidTarget,
			"This MCP server was removed. Choose another one.", "server_removed")
	}
	if err := k.fill(ctx, &made, v, f, r); err != nil {
		return MadeKey{}, err
	}
	switch err := k.Store.MakeProgramKey(ctx,
		storage.ProgramKey{Session: token, Client: made.Client, Grant: made.Grant}); {
	case errors.Is(err, storage.ErrExists):
		return k.again(ctx, made)
	case errors.Is(err, storage.ErrFull):
		return MadeKey{}, err
	case errors.Is(err, storage.ErrNotFound):
		return MadeKey{}, entry.ErrAnotherPerson // signed out in the meantime
	case err != nil:
		return MadeKey{}, refusal.Unavailable(err)
	}
	k.Audit.Record(ctx, audit.ProgramKeyMade, audit.Grant(made.Grant), audit.Client(made.Client),
		slog.Time("expires_at", made.Grant.ExpiresAt))
	k.Notices.Tell(ctx, f.UserID, notice.Change{Kind: notice.KeyMade, Detail: made.Client.Name})
	return made, nil
}

// fill sets the records of a key.
func (k *KeyMaker) fill(ctx context.Context, made *MadeKey, v storage.Visit, f KeyForm, r KeyRequest) error {
	name, err := keyName(r.Name)
	if err != nil {
		return err
	}
	if !slices.Contains(Lives(k.MaxTTL), r.Days) {
		return ErrKeyLife
	}
	permitted, err := k.permitted(ctx, v, made.Server)
	if err != nil {
		return err
	}
	scopes, err := keyScopes(made.Server, permitted, r.Scopes)
	if err != nil {
		return err
	}
	now := k.Now().UTC().Truncate(time.Millisecond)
	digest := storage.Hash(secrets.Hash(f.Secret))
	made.Client = storage.Client{
		ID: f.ClientID, SecretHash: &digest, Name: name, AuthMethod: "client_secret_basic",
		Scopes: scopes, Resources: []string{f.Resource}, Source: storage.SourcePerson, CreatedAt: now,
	}
	// AuthTime is not set, because the user's sign-in says nothing about the program that uses the
	// key.
	made.Grant = storage.Grant{
		ID: f.GrantID, ClientID: f.ClientID, UserID: f.UserID, Scopes: scopes, Resource: f.Resource,
		CreatedAt: now, ExpiresAt: now.Add(time.Duration(r.Days) * day), ForProgram: true,
	}
	return nil
}

// keyScopes returns the scopes of a key: the chosen ones, and the required ones of the resource.
func keyScopes(r storage.Resource, permitted, chosen oauth.Scopes) (oauth.Scopes, error) {
	if len(chosen.Without(permitted)) > 0 {
		return nil, ErrKeyWider
	}
	// in the order of the resource, without duplicates
	scopes := permitted.Intersect(chosen.Union(policy.Required(r)))
	if len(scopes) == 0 && len(r.Scopes) > 0 {
		return nil, ErrNoScope
	}
	return scopes, nil
}

// maxKeyName is the maximum length of a name in characters.
const maxKeyName = 64

// keyName returns the name of a key. It refuses invisible characters, which could reorder the text
// around the name. It does not remove them, because the user would look for the name as typed.
func keyName(name string) (string, error) {
	name = strings.TrimSpace(name)
	if n := utf8.RuneCountInString(name); n == 0 || n > maxKeyName || strings.ContainsFunc(name, label.Invisible) ||
		!utf8.ValidString(name) || label.Visible(name) == "" {
		return "", ErrKeyName
	}
	return label.Visible(name), nil
}

// again returns the key that the same form has just created, for a browser that sent it twice. The
// user's authentication is as recent as for the first request.
func (k *KeyMaker) again(ctx context.Context, made MadeKey) (MadeKey, error) {
	c, err := k.Store.Client(ctx, made.Client.ID)
	if err == nil {
		var stored storage.Connection
		stored, err = k.Store.Connection(ctx, made.Grant.UserID, made.Grant.ID, k.Now())
		made.Grant = stored.Grant
	}
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrRevoked):
		return MadeKey{}, ErrKeyMade // and has ended since
	case err != nil:
		return MadeKey{}, refusal.Unavailable(err)
	}
	same := c.Source == storage.SourcePerson && c.SecretHash != nil && c.Name == made.Client.Name &&
		slices.Equal(c.Scopes, made.Client.Scopes) &&
		subtle.ConstantTimeCompare(c.SecretHash[:], made.Client.SecretHash[:]) == 1
	if !same {
		return MadeKey{}, ErrKeyMade
	}
	made.Client = c
	return made, nil
}
