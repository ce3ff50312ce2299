package safehttp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// SignatureHeader is the header for the result of Signature.
const SignatureHeader = "Mcp-Authd-Signature"

// Signature returns the header value for a body sent to the operator's receiver:
// "t=1700000000,v1=...". v1 is the hex HMAC-SHA256, under the secret, of the time, a dot, and the
// body. A receiver must refuse values that are older than some minutes, and repeated ones.
func Signature(secret []byte, at time.Time, body []byte) string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	return "t=" + stamp + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
