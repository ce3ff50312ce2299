package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// RunPutOff runs the contract of refresh tokens on stores whose schema has deferred step 12: their
// refresh tokens have rows. open returns an empty store, which the suite closes.
func RunPutOff(t *testing.T, open func(t *testing.T) storage.Store) {
	for _, suite := range []struct {
		name string
		run  func(t *testing.T, e *env)
	}{
		{"RedeemCode", redemptions},
		{"RotateRefresh", rotations},
		{"HashedRefresh", hashes},
		{"CutOff", cutOffs},
		{"RevokedBy", revokers},
		{"Revocations", revocations},
		{"Sweeping", sweeping},
		{"Race/AS-90 one code, 32 redeemers", raceRedeem},
		{"Race/AS-94 one refresh token, 32 rotations without grace", raceRotate},
		{"Race/AS-96 one refresh token, 32 rotations within the grace", raceReplay},
	} {
		t.Run(suite.name, func(t *testing.T) { suite.run(t, newEnv(t, open(t))) })
	}
}

// hashes checks the rules that apply only to tokens with rows.
func hashes(t *testing.T, e *env) {
	hashed := func(t *testing.T) (storage.Approval, storage.HashedRefresh) {
		t.Helper()
		a, first := e.granted(t)
		h, ok := first.(storage.HashedRefresh)
		if !ok {
			t.Fatalf("the first refresh token has no row: %T", first)
		}
		return a, h
	}
	t.Run("a refresh token cannot be stored over another, and the code stays good", func(t *testing.T) {
		_, taken := hashed(t)
		a := e.approved(t)
		r := e.redemption(a)
		r.Refresh.Hash = storage.Hash(taken)
		_, err := e.s.RedeemCode(e.ctx, r)
		wantErr(t, err, storage.ErrExists)
		e.redeem(t, e.redemption(a))
	})
	t.Run("a failed rotation leaves the token good", func(t *testing.T) {
		_, taken := hashed(t)
		a, first := hashed(t)
		r := e.rotation(a, first)
		r.Next.Hash = storage.Hash(taken)
		_, err := e.s.RotateRefresh(e.ctx, r)
		wantErr(t, err, storage.ErrExists)
		e.rotate(t, e.rotation(a, first))
	})
	t.Run("AS-95 reuse is still seen when the sealed successor is erased", func(t *testing.T) {
		a, first := hashed(t)
		e.rotate(t, e.rotation(a, first))
		_, err := e.s.Sweep(e.ctx, storage.Retention{Now: e.now.Add(time.Hour), Rotated: e.now.Add(time.Hour)}, 100)
		check(t, err)
		reuse := e.rotation(a, first)
		reuse.Grace = 24 * time.Hour
		_, err = e.s.RotateRefresh(e.ctx, reuse)
		wantErr(t, err, storage.ErrSpent)
		e.wantLive(t, a, false)
	})
}
