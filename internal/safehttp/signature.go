package safehttp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// SignatureHeader holds what Signature returns.
const SignatureHeader = "Mcp-Authd-Signature"

// Signature is the time and the signature of what is posted to a receiver of the operator:
// "t=1700000000,v1=...", the hex form of HMAC-SHA256 under the secret over the time, a dot, and the
// body. A receiver refuses one that is older than some minutes, and what it has seen.
func Signature(secret []byte, at time.Time, body []byte) string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	return "t=" + stamp + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
