//go:build !linux && !darwin && !freebsd

package auditlog

import (
	"errors"
	"os"
)

const openFlags = os.O_RDWR

// lockFile fails, because without supported locks another process could take the file of a running
// writer.
func lockFile(*os.File) error { return errors.ErrUnsupported }

func ownedByUs(os.FileInfo) bool { return true }
