package message

import (
	"fmt"
	"strings"
	"testing"
)

// TestResourceURI: the tables see the resource that a server opens, however it decodes.
func TestResourceURI(t *testing.T) {
	for _, uri := range []string{
		"file:///public/../private/x", "file:///public/./x", "file:///public/..", "file:///..", "../private/x",
		"file:///public/%2e%2e/private/x", "file:///public/.%2E/x", "file:///public/%2E./x",
		"file:///public/%252e%252e/x", "file:///public/%25252525252e/x",
		"file:///public%2f..%2fprivate/x", "file:///public%2Fx", "file:///public/..%5cprivate",
		`file:///public\..\private`, `x://public\a`,
		"file:///public/..;v=1/private", "file:///public/.. /private", "file:///public/x?/../../private",
		"file:///public/x#/../../private",
		"file:///public/.\t./private", "file:///public/x\n", " file:///private/x", "file:///private/x ",
		"file:///public/x%00", "file:///public/%c0%ae%c0%ae/x", "file:///public/100%",
		"file:///%70rivate/x", "file:////private/x", "file:///public//x", "file:/private/x",
		"file://localhost/private/x",
		"FILE:///private/x", "File:///private/x", "https://Mcp.example.com/x", "https://user@mcp.example.com/x",
		"https://user:pw@mcp.example.com/x", "npm://@scope/x",
		"https://mcp.example.com:443/x", "http://mcp.example.com:80/x", "https://mcp.example.com:/x",
		"https://mcp.example.com./x", "https://mcp%2Eexample.com/x", "https:mcp.example.com/x",
		"https://mcp.ex\u0430mple.com/x", "x y://a/b", "1x://a",
	} {
		t.Run("RS-194 refused: "+uri, func(t *testing.T) {
			if err := checkURI(uri); err == nil {
				t.Errorf("got %v", err)
			}
		})
	}
	for _, uri := range []string{
		"file:///public/a", "file:///public/", "file:///C:/a", "file:///public/a..b", "file:///public/.hidden",
		"file:///public/My%20File", "file:///public/100%25", "file://server/share/x",
		"https://mcp.example.com", "https://mcp.example.com:8443/A?p=../x&q=%2Fa", "https://[::1]:9/x",
		"urn:ISBN:123", "repo://Microsoft/vs%2Fcode", "users://{userId}/profile", "file:///{+path}",
		"ui://widget/a.html", "notes", "a/b", "",
		"x://a//b", "x://~u/~v", "x:y", "db://t/\u00fc",
	} {
		t.Run("RS-194 accepted: "+uri, func(t *testing.T) {
			if err := checkURI(uri); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNeedlessEscapes: RS-194, RFC 3986 §2.3. Characters that need no escape must not be escaped: a
// table would treat "%61dmin" and "admin" as different resources. Rules match "~" in both
// spellings.
func TestNeedlessEscapes(t *testing.T) {
	for c := byte(1); c < 0x80; c++ {
		needless := '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '.' ||
			c == '_'
		for _, format := range []string{"x://h/a%%%02x", "x://h/a%%%02Xb", "x://h/%%20%%%02x"} {
			uri := fmt.Sprintf(format, c)
			if err := checkURI(uri); (err != nil) != needless {
				t.Errorf("%s: got %v, want it refused: %v", uri, err, needless)
			}
		}
	}
}

// FuzzURI: no accepted URI has a dot segment, however often it is decoded.
func FuzzURI(f *testing.F) {
	f.Add("file:///public/%2e%2e/x")
	f.Add("https://a/%252e./x")
	f.Fuzz(func(t *testing.T, uri string) {
		if checkURI(uri) != nil {
			return
		}
		for range 3 {
			for _, s := range strings.FieldsFunc(uri, func(c rune) bool { return c == '/' || c == '\\' }) {
				if s == "." || s == ".." {
					t.Fatalf("%q", uri)
				}
			}
			uri = decoded.Replace(uri)
		}
	})
}

var decoded = strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", "%5c", `\`, "%5C", `\`, "%25", "%")
