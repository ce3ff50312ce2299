//go:build !linux && !darwin && !freebsd

package auditlog

import (
	"errors"
	"os"
)

const openFlags = os.O_RDWR

// lockFile fails where this system's locks are not known: another process could take the file of one that
// lives.
func lockFile(*os.File) error { return errors.ErrUnsupported }

func ownedByUs(os.FileInfo) bool { return true }
