package notice

// Kind is a kind of change. It is kept and sent, so a name is never reused for another meaning.
type Kind string

// The kinds of changes.
const (
	WayAdded            Kind = "way-added"
	WayRemoved          Kind = "way-removed"
	RecoveryRenewed     Kind = "recovery-renewed"
	RecoveryUsed        Kind = "recovery-used"
	RecoverLinkMade     Kind = "recover-link-made"
	PasswordChanged     Kind = "password-changed"
	AccountConnected    Kind = "account-connected"
	AccountDisconnected Kind = "account-disconnected"
	KeyMade             Kind = "key-made"
	CodesGuessed        Kind = "codes-guessed"
	DeviceSignedIn      Kind = "device-signed-in"
)

// kinds are all of them with what a letter says.
var kinds = map[Kind]wording{
	WayAdded:            {"A new way to sign in was added", "A new way to sign in was added to your account."},
	WayRemoved:          {"A way to sign in was removed", "A way to sign in was removed from your account."},
	RecoveryRenewed:     {"New recovery codes were made", "New recovery codes were made. The earlier ones are no longer valid."},
	RecoveryUsed:        {"Your account was recovered", "A recovery code or a recovery link was used to get into your account."},
	RecoverLinkMade:     {"A recovery link was made", "A link to recover your account was made."},
	PasswordChanged:     {"Your password was changed", "The password of your account was changed."},
	AccountConnected:    {"An account was connected", "An account at a provider was connected to your account. It can now sign in to it."},
	AccountDisconnected: {"An account was disconnected", "An account at a provider was disconnected from your account."},
	DeviceSignedIn: {"A browser was signed in from another device",
		"You, or a person with one of your devices, let another browser into your account."},
	CodesGuessed: {"Wrong codes were typed", "Several wrong codes of your authenticator app were typed, after the password " +
		"or another proof that was right. If it was not you, somebody knows your password: choose another one."},
	KeyMade: {"A key for a program was made", "A key was made with which a program can act for you."},
}

// wording is what a letter says of a kind.
type wording struct{ subject, text string }
