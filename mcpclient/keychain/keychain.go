// Package keychain keeps the sign-ins of [mcpclient.Person] under the protection of the system's
// keychain: Keychain on macOS, the Credential Manager on Windows, and the Secret Service elsewhere.
//
// Keychains have small entries: 2,560 bytes on Windows. So the keychain holds one key, and the
// sign-ins are in files that this key encrypts.
package keychain

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/mcp-authd/mcp-authd/mcpclient"
)

// entry is the name of the key in the keychain.
const entry = "sign-ins"

const keySize = 32

// unlockTime is how long another process may take to create the key: its user may have to unlock the
// keychain.
const unlockTime = 2 * time.Minute

// Open returns a Store whose files are in dir and encrypted under a key in the keychain of the
// current user. service is the program's name in the keychain. A locked keychain may ask the user.
// The error is an *mcpclient.Error if there is no keychain, or it stays locked; a program may then
// use [mcpclient.FileStore].
func Open(service, dir string) (mcpclient.Store, error) {
	files := mcpclient.FileStore(dir)
	ctx, cancel := context.WithTimeout(context.Background(), unlockTime)
	defer cancel()
	unlock, err := files.Lock(ctx, entry) // one process creates the key
	if err != nil {
		return nil, err
	}
	defer unlock()
	key, err := read(service)
	if errors.Is(err, keyring.ErrNotFound) {
		key, err = create(service)
	}
	if err != nil {
		return nil, &mcpclient.Error{
			Step:   "store",
			Why:    fmt.Sprintf("the system's keychain cannot be used: %v", err),
			Advice: "Unlock the keychain. On a computer without one, keep the sign-in in a file.",
		}
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return store{files, aead}, nil
}

func read(service string) ([]byte, error) {
	text, err := keyring.Get(service, entry)
	if err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != keySize {
		return nil, fmt.Errorf("its entry %q of %q is not a key of this program; delete it", entry, service)
	}
	return key, nil
}

func create(service string) ([]byte, error) {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	return key, keyring.Set(service, entry, base64.StdEncoding.EncodeToString(key))
}

// store encrypts the data of another store.
type store struct {
	mcpclient.Store
	aead cipher.AEAD
}

// Load implements mcpclient.Store. Data of a key that the keychain has lost is like no data.
func (s store) Load(ctx context.Context, key string) ([]byte, error) {
	sealed, err := s.Store.Load(ctx, key)
	if err != nil || sealed == nil {
		return nil, err
	}
	data, err := s.aead.Open(nil, nil, sealed, []byte(key))
	if err != nil {
		return nil, nil
	}
	return data, nil
}

// Save implements mcpclient.Store.
func (s store) Save(ctx context.Context, key string, data []byte) error {
	return s.Store.Save(ctx, key, s.aead.Seal(nil, nil, data, []byte(key)))
}
