package verify

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Hash is a hash of the tree.
type Hash = tlog.Hash

// Checkpoint is the size and root of the log at some time, signed by its key.
type Checkpoint struct {
	Origin string // of the log, for example auth.example.com/audit
	Size   int64  // number of entries
	Root   Hash
}

// Text returns the text to sign.
func (c Checkpoint) Text() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, base64.StdEncoding.EncodeToString(c.Root[:]))
}

// maxCheckpoint limits the size of a signed checkpoint, in bytes.
const maxCheckpoint = 64 << 10

// OpenCheckpoint verifies a signed checkpoint with a key name+hash+key, whose name must be the
// origin. It ignores other signatures, such as those by witnesses.
func OpenCheckpoint(signed []byte, key string) (Checkpoint, error) {
	verifier, err := note.NewVerifier(key)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("verify: the key of the log cannot be read: %w", err)
	}
	if len(signed) > maxCheckpoint {
		return Checkpoint{}, errors.New("verify: the checkpoint is too long")
	}
	n, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("verify: the checkpoint: %w", err)
	}
	c, err := parseCheckpoint(n.Text)
	if err == nil && c.Origin != verifier.Name() {
		err = fmt.Errorf("verify: the checkpoint is of the log %q", c.Origin)
	}
	return c, err
}

// parseCheckpoint reads the text of a checkpoint. Lines after the third are extensions.
func parseCheckpoint(text string) (c Checkpoint, err error) {
	lines := strings.SplitN(text, "\n", 4)
	if len(lines) != 4 {
		return c, errors.New("verify: the checkpoint has not three lines")
	}
	c.Origin = lines[0]
	if c.Size, err = strconv.ParseInt(lines[1], 10, 64); err != nil || c.Size < 0 ||
		strconv.FormatInt(c.Size, 10) != lines[1] {
		return c, errors.New("verify: the size of the checkpoint must be a number")
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != len(c.Root) {
		return c, errors.New("verify: the root of the checkpoint must be a hash")
	}
	copy(c.Root[:], root)
	return c, nil
}
