package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Store keeps the sign-ins of users, which hold tokens. [FileStore], [MemoryStore] and the package
// keychain implement it. A Store must be safe for concurrent use.
type Store interface {
	// Load returns the data of a key, or nil if there is none.
	Load(ctx context.Context, key string) ([]byte, error)
	// Save replaces the data of a key.
	Save(ctx context.Context, key string, data []byte) error
	// Delete deletes the data of a key. It is not an error if there is none.
	Delete(ctx context.Context, key string) error
	// Lock waits until nobody else holds the lock of a key, in this and in other processes. Load,
	// Save and Delete do not need the lock.
	Lock(ctx context.Context, key string) (unlock func(), err error)
}

// FileStore returns a Store with one file for each sign-in in a directory, which it creates. Only
// the user may read the files: a file of another user, or one that others may read, is refused.
func FileStore(dir string) Store { return fileStore{dir} }

type fileStore struct{ dir string }

// maxKept limits the size of a file in bytes.
const maxKept = 256 << 10

func (s fileStore) path(key string) string { return filepath.Join(s.dir, key+".json") }

// Load implements Store.
func (s fileStore) Load(_ context.Context, key string) ([]byte, error) {
	in, err := os.Open(s.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, s.fail(err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil, s.fail(err)
	}
	if why := exposed(info); why != "" {
		return nil, fail(stepStore, fmt.Sprintf("See who had access. Then delete the file and sign in again: %s", in.Name()),
			"%s %s", in.Name(), why)
	}
	data, err := io.ReadAll(io.LimitReader(in, maxKept))
	if err != nil {
		return nil, s.fail(err)
	}
	return data, nil
}

// Save implements Store. It replaces the file atomically. No other user can read the file (CL-27).
func (s fileStore) Save(_ context.Context, key string, data []byte) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return s.fail(err)
	}
	out, err := os.CreateTemp(s.dir, ".new-*") // mode 0600
	if err != nil {
		return s.fail(err)
	}
	defer os.Remove(out.Name())
	_, err = out.Write(data)
	if err = errors.Join(err, out.Close()); err != nil {
		return s.fail(err)
	}
	if err := os.Rename(out.Name(), s.path(key)); err != nil {
		return s.fail(err)
	}
	return nil
}

// Delete implements Store.
func (s fileStore) Delete(_ context.Context, key string) error {
	if err := os.Remove(s.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s.fail(err)
	}
	return nil
}

// Lock implements Store with a file beside the data, which stays.
func (s fileStore) Lock(ctx context.Context, key string) (unlock func(), err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, s.fail(err)
	}
	l, err := os.OpenFile(s.path(key)+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, s.fail(err)
	}
	for !lockFile(l) {
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			l.Close()
			return nil, fail(stepStore, "Is another program waiting for the user to sign in?",
				"another process holds the lock of the sign-in: %v", ctx.Err())
		}
	}
	return func() { l.Close() }, nil
}

// lockPoll is the interval between attempts to get a lock.
const lockPoll = 50 * time.Millisecond

func (s fileStore) fail(err error) error {
	return fail(stepStore, "The user must be able to write to "+s.dir+".", "the sign-in cannot be kept: %v", err)
}

// MemoryStore returns a Store that ends with the process.
func MemoryStore() Store {
	return &memoryStore{data: map[string][]byte{}, locks: map[string]chan struct{}{}}
}

type memoryStore struct {
	mu    sync.Mutex // guards the maps
	data  map[string][]byte
	locks map[string]chan struct{}
}

// Load implements Store.
func (s *memoryStore) Load(_ context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data[key], nil
}

// Save implements Store.
func (s *memoryStore) Save(_ context.Context, key string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data[key] = data
	return nil
}

// Delete implements Store.
func (s *memoryStore) Delete(_ context.Context, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.data, key)
	return nil
}

// Lock implements Store.
func (s *memoryStore) Lock(ctx context.Context, key string) (unlock func(), err error) {
	s.mu.Lock()
	held := s.locks[key]
	if held == nil {
		held = make(chan struct{}, 1)
		s.locks[key] = held
	}
	s.mu.Unlock()
	select {
	case held <- struct{}{}:
		return func() { <-held }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
