package signin

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// File stores a [Session] in a user's directory.
type File struct{ path string }

// Kept is the content of a File.
type Kept struct {
	Issuer    string    `json:"issuer"`
	ClientID  string    `json:"client_id"`
	Device    bool      `json:"device,omitempty"` // the client uses the device flow
	Access    string    `json:"access_token"`
	ExpiresAt time.Time `json:"expires_at"`
	Refresh   string    `json:"refresh_token,omitempty"`
}

// maxFile is the maximum size of a file in bytes.
const maxFile = 256 << 10

// FileFor returns the file for a resource in a directory. The directory is created on the first
// write. Each server has its own file, so its tokens are never sent to another server (CL-15).
func FileFor(dir, resource string) File {
	name := secrets.Hash(resource)
	return File{filepath.Join(dir, hex.EncodeToString(name[:16])+".json")}
}

// read returns the stored data, or the zero value if the file does not exist or is not valid.
func (f File) read() (k Kept, err error) {
	in, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return k, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxFile))
	if err != nil {
		return k, err
	}
	if json.Unmarshal(text, &k) != nil {
		return Kept{}, nil
	}
	return k, nil
}

// write replaces the file atomically. No other user can read the file (CL-27).
func (f File) write(k Kept) error {
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(f.path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	_, err = out.Write(text)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), f.path)
}

func (f File) remove() error { return os.Remove(f.path) }

// lock waits until no other program holds the lock.
func (f File) lock(ctx context.Context) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return nil, fmt.Errorf("the sign-in cannot be kept: %w", err)
	}
	l, err := os.OpenFile(f.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the sign-in cannot be kept: %w", err)
	}
	for !lockFile(l) {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			l.Close()
			return nil, ctx.Err()
		}
	}
	return func() { l.Close() }, nil
}
