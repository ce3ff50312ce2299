package auditlog

import (
	"errors"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Keys are what Verify checks a log by.
type Keys struct {
	Public string  // the key as verifiers take it, "" when nothing was signed yet
	Signer *Signer // has the seal; nil when there is none yet
}

// seal reads the seal of the log.
func (c *checker) seal() error {
	with, err := c.keys(c.ctx)
	if err != nil || with.Signer == nil {
		return unchecked(err)
	}
	kept, _, err := with.Signer.custody.read(c.ctx)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return unchecked(err)
	}
	if kept.Refused != "" {
		return errors.New(kept.Refused)
	}
	c.held = &kept
	return nil
}

// signedFar has the newest checkpoint and the end of the log be at least as far as the seal says.
func (c *checker) signedFar() error {
	if c.held == nil {
		return nil
	}
	signed := c.held.Signed.Size
	if have := min(c.newest, c.head.Size); have < signed {
		return &verify.Wrong{First: have, Last: signed - 1, Why: label.Count(signed, "entry was", "entries were") +
			" signed, and the checkpoint or the entries are missing"}
	}
	return nil
}

// agrees has the tree of the entries so far be the one that the seal says was signed.
func (c *checker) agrees() error {
	if c.held == nil || c.log.Size() != c.held.Signed.Size || c.log.Root() == c.held.Signed.root() {
		return nil
	}
	return &verify.Wrong{First: 0, Last: c.log.Size() - 1, Why: "they are not what was signed last, as the seal has it"}
}

// writer checks the MAC of an entry, and its place in the chain of its writer.
func (c *checker) writer(index int64, leaf []byte) error {
	_, mac := verify.CutMAC(leaf)
	if c.held == nil && mac != "" { // a server may have made the seal, and begun to write, in this moment
		if err := c.seal(); err != nil {
			return err
		}
		if c.held == nil {
			return &verify.Wrong{First: index, Last: index, Why: "it has a MAC, and the seal of the log is missing"}
		}
	}
	if c.held == nil {
		return nil
	}
	if c.chains.Chains == nil {
		c.chains = c.chains.clone(c.held.Signed.At)
	}
	unsealed := index < c.held.Signed.SealedFrom || index >= c.held.Signed.Size && c.held.unsealed(c.held.Signed)
	if err := c.chains.follow(&MAC{c.held.Key}, index, leaf, unsealed, c.head.First > 0); err != nil {
		return err
	}
	if mac != "" {
		c.sealed++
	}
	return nil
}
