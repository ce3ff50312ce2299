package users

import (
	"os"
	"testing"
)

// TestCompressedPasswords checks that the embedded list is common.txt.
func TestCompressedPasswords(t *testing.T) {
	want, err := os.ReadFile("common.txt")
	if err != nil || commonPasswords() != string(want) {
		t.Errorf("common.txt.gz is not common.txt (%v): gzip -9 -n -k -f common.txt", err)
	}
}
