package notice

import (
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/text"
)

// Kind is a kind of change. It is stored and sent, so a name must never get another meaning.
type Kind string

// The kinds of changes.
const (
	WayAdded            Kind = "way-added"
	WayRemoved          Kind = "way-removed"
	WayRenamed          Kind = "way-renamed"
	PasswordRemoved     Kind = "password-removed"
	RecoveryRenewed     Kind = "recovery-renewed"
	RecoveryRemoved     Kind = "recovery-removed"
	RecoveryUsed        Kind = "recovery-used"
	RecoverLinkMade     Kind = "recover-link-made"
	RecoveryStopped     Kind = "recovery-stopped"
	PasswordChanged     Kind = "password-changed"
	AccountConnected    Kind = "account-connected"
	AccountDisconnected Kind = "account-disconnected"
	KeyMade             Kind = "key-made"
	Resumed             Kind = "connection-resumed"
	CodesGuessed        Kind = "codes-guessed"
	RemoteSignIn        Kind = "device-signed-in"
)

// wording is the text of a mail about a kind.
type wording struct{ subject, text text.Sentence }

// kinds maps each kind to the text of its mail.
var kinds = map[Kind]wording{
	WayAdded:            {text.Say("letter.way_added"), text.Say("letter.way_added_text")},
	WayRemoved:          {text.Say("letter.way_removed"), text.Say("letter.way_removed_text")},
	WayRenamed:          {text.Say("letter.way_renamed"), text.Say("letter.way_renamed_text")},
	PasswordRemoved:     {text.Say("letter.password_removed"), text.Say("letter.password_removed_text")},
	RecoveryRenewed:     {text.Say("letter.recovery_renewed"), text.Say("letter.recovery_renewed_text")},
	RecoveryRemoved:     {text.Say("letter.recovery_removed"), text.Say("letter.recovery_removed_text")},
	RecoveryUsed:        {text.Say("letter.recovery_used"), text.Say("letter.recovery_used_text")},
	RecoverLinkMade:     {text.Say("letter.recover_link_made"), text.Say("letter.recover_link_made_text")},
	RecoveryStopped:     {text.Say("letter.recovery_stopped"), text.Say("letter.recovery_stopped_text")},
	PasswordChanged:     {text.Say("letter.password_changed"), text.Say("letter.password_changed_text")},
	AccountConnected:    {text.Say("letter.account_connected"), text.Say("letter.account_connected_text")},
	AccountDisconnected: {text.Say("letter.account_disconnected"), text.Say("letter.account_disconnected_text")},
	RemoteSignIn:        {text.Say("letter.device_signed_in"), text.Say("letter.device_signed_in_text")},
	CodesGuessed:        {text.Say("letter.codes_guessed"), text.Say("letter.codes_guessed_text")},
	Resumed:             {text.Say("letter.connection_resumed"), text.Say("letter.connection_resumed_text")},
	KeyMade:             {text.Say("letter.key_made"), text.Say("letter.key_made_text")},
}

// otherwise is the text of a mail about any other kind.
var otherwise = wording{text.Say("letter.changed"), text.Say("letter.changed_text")}

// named lists the kinds whose detail is a name. A user, possibly a thief, an application or a
// browser may have chosen it.
var named = []Kind{WayAdded, WayRemoved, WayRenamed, KeyMade, Resumed, RemoteSignIn}

// maxName limits such a name, in characters, so that it cannot hold a message.
const maxName = 40

// between separates the old and the new name in the detail of WayRenamed.
const between = " → "

// Renamed returns the detail of WayRenamed.
func Renamed(before, after string) string {
	return label.Clean(before, maxName) + between + label.Clean(after, maxName)
}

// Name returns the name in a detail, or "" for a kind whose detail is not a name. Show it in
// quotation marks, because it may read like a sentence of the server.
func (k Kind) Name(detail string) string {
	if !slices.Contains(named, k) {
		return ""
	}
	if before, after, ok := strings.Cut(detail, between); ok && k == WayRenamed {
		return label.Claim(before, maxName) + between + label.Claim(after, maxName)
	}
	return label.Claim(detail, maxName)
}
