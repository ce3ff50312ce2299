package admin

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/keys"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Key is a published signing key.
type Key struct {
	ID          string    `json:"kid"`
	Algorithm   string    `json:"alg"`
	State       string    `json:"state" jsonschema:"next, active or retired"`
	CreatedAt   time.Time `json:"created_at"`
	ActivatesAt time.Time `json:"activates_at,omitzero" jsonschema:"of a next key, at the earliest"`
	ActivatedAt time.Time `json:"activated_at,omitzero"`
	RetiredAt   time.Time `json:"retired_at,omitzero"`
	ExpiresAt   time.Time `json:"expires_at,omitzero"`
}

// SigningKeys lists the published signing keys.
type SigningKeys struct {
	Page[Key]
	AccessTTL string `json:"access_ttl" jsonschema:"how long an access token that one of them signed is good"`
	Published string `json:"published,omitempty" jsonschema:"the key that keys rotate has published"`
}

// KeyRotation says how to replace signing keys.
type KeyRotation struct {
	Now    bool `json:"now,omitempty" jsonschema:"sign with the new key in fifteen seconds"`
	Revoke bool `json:"revoke,omitempty" jsonschema:"with now: take out all other keys, and sign at once"`
}

// KeyID names a signing key.
type KeyID struct {
	ID string `json:"kid" jsonschema:"the id of the key"`
}

// Operations on signing keys.
var (
	KeysList = define(Spec{
		Name: "keys list", Method: "GET", Path: "/keys", Roles: reading,
		Summary: "List the signing keys that are published",
		Details: "Lists the signing keys that are published: a next key signs nothing yet, the active one signs,\n" +
			"a retired one is there for the tokens that it signed.",
	}, (*Service).listKeys)
	KeysRotate = define(Spec{
		Name: "keys rotate", Method: "POST", Path: "/keys/rotate", Fresh: true,
		Takes: true, Summary: "Replace the signing key",
		Details: "Publishes the next signing key, with which a running server begins to sign when resource servers\n" +
			"have had time to fetch it (keys.publish_ahead). The present one then stays published until every\n" +
			"token that it signed has expired.\n\n" +
			"When it is to be now, the new key signs as soon as every replica knows it, in fifteen seconds. When the others\n" +
			"are to be revoked now, for a key in the wrong hands, every other key is taken out as well and the new one\n" +
			"signs at once: all access tokens end, and clients refresh theirs.",
	}, (*Service).rotateKeys)
	KeysRevoke = define(Spec{
		Name: "keys revoke", Method: "DELETE", Path: "/keys/{kid}", Fresh: true,
		Takes: true, Summary: "Revoke signing keys at once",
		Details: "Takes signing keys out of the published set at once, because others may know them. If the active key\n" +
			"is among them, a new one replaces it; for fifteen seconds, until every replica knows that one, a retired\n" +
			"key that is still published may sign. Access tokens that revoked keys signed end; clients refresh theirs.",
	}, (*Service).revokeKey)
)

// listKeys reads the store directly, because a key manager would create a first key.
func (s *Service) listKeys(ctx context.Context, _ None) (SigningKeys, error) {
	all, err := s.Store.Keys(ctx, s.Now())
	return s.keysOf(all), err
}

func (s *Service) keysOf(all []storage.SigningKey) SigningKeys {
	out := SigningKeys{Page: Page[Key]{Items: make([]Key, 0, len(all))}, AccessTTL: s.Config.Tokens.AccessTTL.String()}
	for _, k := range all {
		v := Key{
			ID: k.ID, Algorithm: k.Algorithm, State: string(k.State), CreatedAt: k.CreatedAt,
			ActivatedAt: k.ActivatedAt, RetiredAt: k.RetiredAt, ExpiresAt: k.ExpiresAt,
		}
		if k.State == storage.KeyNext {
			v.ActivatesAt = k.CreatedAt.Add(s.Config.Keys.Policy().PublishAhead)
		}
		out.Items = append(out.Items, v)
	}
	return out
}

func (s *Service) rotateKeys(ctx context.Context, in KeyRotation) (SigningKeys, error) {
	if in.Revoke && !in.Now {
		return SigningKeys{}, fault(ErrInvalid,
			"revoke needs now: a key that may be known to others must not go on signing")
	}
	m, err := s.Keys(ctx)
	if err != nil {
		return SigningKeys{}, err
	}
	var published storage.SigningKey
	switch {
	case in.Revoke:
		err = m.RevokeAll(ctx)
	case in.Now:
		err = m.Rotate(ctx)
	default:
		published, err = m.Publish(ctx)
	}
	if err != nil {
		return SigningKeys{}, err
	}
	all, err := m.List(ctx)
	out := s.keysOf(all)
	out.Published = published.ID
	return out, err
}

func (s *Service) revokeKey(ctx context.Context, in KeyID) (SigningKeys, error) {
	m, err := s.Keys(ctx)
	if err != nil {
		return SigningKeys{}, err
	}
	err = m.Revoke(ctx, in.ID)
	if errors.Is(err, keys.ErrNotFound) {
		return SigningKeys{}, fault(ErrNotFound, "no key %q is published; see: mcp-authd keys list", in.ID)
	}
	if err != nil {
		return SigningKeys{}, err
	}
	all, err := m.List(ctx)
	return s.keysOf(all), err
}
