package verify

import (
	"strings"
	"testing"
	"time"
)

// TestLeaf: OB-04. Each entry has exactly one encoding, as in RFC 8785.
func TestLeaf(t *testing.T) {
	e := Entry{
		At: time.Date(2026, 3, 1, 13, 0, 0, 5e6, time.FixedZone("", 3600)), Event: "login.succeeded",
		Fields: map[string]string{"user": "é\"\\\b\t\n\f\r\x1f<>&\u2028\xff", "by": "1"},
	}
	const want = `{"at":"2026-03-01T12:00:00.005Z","event":"login.succeeded",` +
		`"fields":{"by":"1","user":"é\"\\\b\t\n\f\r\u001f<>&` + "\u2028\uFFFD" + `"}}`
	got := string(e.Leaf())
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	back, err := ParseEntry([]byte(want))
	if err != nil || back.Fields["by"] != "1" || !back.At.Equal(e.At) {
		t.Errorf("read back: %+v, %v", back, err)
	}
	for _, wrong := range []string{
		"", "{}", " " + want, want + " ", strings.Replace(want, `"by":"1",`, `"by":"1","by":"2",`, 1),
		strings.Replace(want, ".005Z", "Z", 1), strings.Replace(want, `"fields"`, `"more":1,"fields"`, 1),
		strings.Replace(want, `"1"`, `1`, 1), strings.Replace(want, "é", `\u00e9`, 1),
	} {
		if _, err := ParseEntry([]byte(wrong)); err == nil {
			t.Errorf("%s was taken", wrong)
		}
	}
}

// TestMACOfALeaf: EN-09. A MAC can be added to a leaf and removed again, and text in an entry is
// never mistaken for a MAC.
func TestMACOfALeaf(t *testing.T) {
	for _, fields := range []map[string]string{
		nil, {"user": "bob"}, {"user": `","~mac":"x`}, {"zz": `"~mac":"x"}}`},
	} {
		bare := Entry{At: time.Unix(0, 0), Event: "login.succeeded", Fields: fields}.Leaf()
		if got, mac := CutMAC(bare); mac != "" || string(got) != string(bare) {
			t.Errorf("%s has the MAC %q", bare, mac)
		}
		sealed := WithMAC(bare, "awr_1.0.AQ")
		got, mac := CutMAC(sealed)
		if mac != "awr_1.0.AQ" || string(got) != string(bare) {
			t.Errorf("%s: got %q of %s", sealed, mac, got)
		}
		e, err := ParseEntry(sealed)
		if err != nil || e.MAC != mac || len(e.Fields) != len(fields) || string(e.Leaf()) != string(sealed) {
			t.Errorf("%s: got %+v, %v", sealed, e, err)
		}
	}
}

func FuzzParseEntry(f *testing.F) {
	f.Add([]byte(`{"at":"2026-03-01T12:00:00.005Z","event":"a","fields":{"b":"c","~mac":"awr_1.0.AQ"}}`))
	f.Add([]byte(`{"at":"2026-03-01T12:00:00.005Z","event":"a","fields":{"~mac":""}}`))
	f.Add([]byte(`{"at":"2026-03-01T12:00:00.005Z","event":"a","fields":{"b":"c"}}`))
	f.Fuzz(func(t *testing.T, leaf []byte) {
		if e, err := ParseEntry(leaf); err == nil && string(e.Leaf()) != string(leaf) {
			t.Errorf("%q is read and not written", leaf)
		} else if bare, mac := CutMAC(leaf); err == nil &&
			(mac != e.MAC || mac != "" && string(WithMAC(bare, mac)) != string(leaf)) {
			t.Errorf("%q has the MAC %q and is read with %q", leaf, mac, e.MAC)
		}
	})
}

// TestCheckpointText: OB-04, C2SP tlog-checkpoint.
func TestCheckpointText(t *testing.T) {
	c := Checkpoint{Origin: "auth.example.com/audit", Size: 20852163, Root: Hash{1}}
	back, err := parseCheckpoint(c.Text() + "an extension\n")
	if err != nil || back != c {
		t.Errorf("got %+v, %v", back, err)
	}
	for _, wrong := range []string{
		"", "a\n1\n", "a\n01\n" + c.Root.String() + "\n", "a\n-1\n" + c.Root.String() + "\n", "a\n1\nAQ==\n",
		"a\n1\n" + c.Root.String(),
	} {
		if _, err := parseCheckpoint(wrong); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
	if _, err := OpenCheckpoint([]byte(c.Text()+"\n— auth.example.com/audit AAAA\n"),
		"auth.example.com/audit+f7a1+AAAA"); err == nil {
		t.Error("a malformed key was accepted")
	}
}
