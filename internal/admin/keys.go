package admin

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Key is a published signing key.
type Key struct {
	ID          string    `json:"kid"`
	Algorithm   string    `json:"alg"`
	State       string    `json:"state" jsonschema:"next, active or retired"`
	CreatedAt   time.Time `json:"created_at"`
	ActivatesAt time.Time `json:"activates_at,omitzero" jsonschema:"earliest time for a next key"`
	ActivatedAt time.Time `json:"activated_at,omitzero"`
	RetiredAt   time.Time `json:"retired_at,omitzero"`
	ExpiresAt   time.Time `json:"expires_at,omitzero"`
}

// SigningKeys lists the published signing keys.
type SigningKeys struct {
	Page[Key]
	AccessTTL string `json:"access_ttl" jsonschema:"lifetime of access tokens"`
	Published string `json:"published,omitempty" jsonschema:"the new key of keys rotate"`
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
		Summary: "List the published signing keys",
		Details: "Lists the published signing keys. A next key signs nothing yet, the active key signs, and a retired\n" +
			"key only verifies the tokens that it signed.",
	}, (*Service).listKeys)
	KeysRotate = define(Spec{
		Name: "keys rotate", Method: "POST", Path: "/keys/rotate", Fresh: true,
		Takes: true, Summary: "Replace the signing key",
		Details: "Publishes the next signing key. A running server begins to sign with it once resource servers have\n" +
			"had time to fetch it (keys.publish_ahead). The present key then stays published until every token\n" +
			"that it signed has expired.\n\n" +
			"If you choose to replace the key now, the new key signs as soon as every replica knows it, after\n" +
			"fifteen seconds. If you also revoke the other keys, because one may be in the wrong hands, every\n" +
			"other key is taken out and the new one signs at once: all access tokens end, and clients refresh\n" +
			"theirs.",
	}, (*Service).rotateKeys)
	KeysRevoke = define(Spec{
		Name: "keys revoke", Method: "DELETE", Path: "/keys/{kid}", Fresh: true,
		Takes: true, Summary: "Revoke signing keys at once",
		Details: "Takes signing keys out of the published set at once, because others may know them. If the active key\n" +
			"is among them, a new one replaces it. For fifteen seconds, until every replica knows the new key, a\n" +
			"retired key that is still published may sign. Access tokens that revoked keys signed end; clients\n" +
			"refresh theirs.",
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
