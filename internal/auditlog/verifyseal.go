package auditlog

import (
	"errors"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Keys are the inputs for Verify.
type Keys struct {
	Public string  // in the form name+hash+key; "" if the key is not created yet
	Signer *Signer // reads the seal; nil if the key is not created yet
}

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

// signedFar checks that the newest checkpoint and the log are as long as the seal says.
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

// agrees checks the tree against the seal, once as many entries are read as were signed.
func (c *checker) agrees() error {
	if c.held == nil || c.log.Size() != c.held.Signed.Size || c.log.Root() == c.held.Signed.root() {
		return nil
	}
	return &verify.Wrong{First: 0, Last: c.log.Size() - 1, Why: "they are not what was signed last, as the seal has it"}
}

// writer checks the MAC of an entry and its position in its writer's chain.
func (c *checker) writer(index int64, leaf []byte) error {
	_, mac := verify.CutMAC(leaf)
	if c.held == nil && mac != "" { // a server may just have created the seal and begun to write
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
