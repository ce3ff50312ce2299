package console

var userTexts = map[string]wording{
	"user add": {
		act: "Add a user", title: "Add a user",
		lead: "Creates an account with a password that you choose. To let the user choose it, invite them instead.",
		done: "The account was created.",
	},
	"user invite": {
		act: "Invite a user", title: "Invite a user",
		lead: "Creates a link, for one use. Whoever opens it chooses a password or a passkey, and then has the " +
			"account.",
	},
	"user recover": {
		act: "Recovery link", title: "Recovery link for %s",
		lead: "Creates a link, for one use. Whoever opens it chooses a new password or passkey for %s. Give it to " +
			"nobody else.",
	},
	"user delete": {
		act: "Delete", title: "Delete %s",
		lead: "Deletes the account permanently. Its name can be given to another account later.",
		done: "%s was deleted.",
	},
	"user disable": {
		act: "Disable", title: "Disable %s",
		lead: "Signs %s out everywhere and disconnects all applications. They cannot sign in until you enable the " +
			"account.",
		done: "%s is disabled.",
	},
	"user enable": {
		act: "Enable", title: "Enable %s",
		lead: "Lets %s sign in again. Applications must be connected again.", done: "%s is enabled.",
	},
	"user passwd": {
		act: "Set password", title: "Set a password for %s",
		lead: "Replaces the password of %s and signs them out everywhere. Also disconnects all applications, " +
			"unless you keep their access.",
		done: "The password of %s was changed.",
	},
	"user set-mail": {
		act: "Change mail address", title: "Mail address of %s",
		lead: "Notices about the account and links that reset the password go to this address.",
		done: "The mail address of %s was changed.",
	},
	"user set-role": {
		act: "Change role", title: "Role of %s",
		lead: "Changes what %s may do in this console, and signs them out everywhere.",
		done: "The role of %s was changed.",
	},
	"user links": {
		act: "Open links", title: "Open links",
		lead: "Invitation, recovery and password reset links that still work. A link itself is shown only once.",
	},
	"user links withdraw": {
		act: "Withdraw", title: "Withdraw the links for %s",
		lead: "Every open link for %s stops working.", done: "The links for %s no longer work.",
	},
	"user ways": {act: "Authentication methods", title: "Authentication methods", lead: "How a user can sign in."},
	"user ways remove": {
		act: "Remove", title: "Remove an authentication method of %s",
		lead: "%s can no longer sign in with it. Use this for a lost phone or key.",
		done: "The authentication method of %s was removed.",
	},
	"user identities": {
		act: "Accounts elsewhere", title: "Accounts at identity providers",
		lead: "Accounts elsewhere that the user can sign in with.",
	},
	"user sessions": {act: "Sessions", title: "Signed-in browsers", lead: "Browsers in which the user is signed in."},
	"user sessions end": {
		act: "Sign out", title: "Sign %s out of one browser",
		lead: "Ends this session of %s. Connected applications stay connected.", done: "%s was signed out of that " +
			"browser.",
	},
	"user groups": {
		act: "Groups at providers", title: "Groups at identity providers",
		lead: "The groups that each provider last reported for the user, and the scopes that rules withhold.",
	},
	"user list": {title: "Users", act: "Users"},
	"user show": {title: "Find a user", act: "Show"},
}

var groupTexts = map[string]wording{
	"group add": {
		act: "Add members", title: "Add members to a group",
		lead: "A group that does not exist is created. Access rules for the group then apply to its members.",
		done: "The group was changed.",
	},
	"group remove": {
		act: "Remove members", title: "Remove members from %s",
		lead: "They lose the access that only rules for this group give them.", done: "The group %s was changed.",
	},
	"group delete": {
		act: "Delete", title: "Delete the group %s", lead: "Deletes the group. Its members keep their accounts.",
		done: "The group %s was deleted.",
	},
	"group list": {title: "Groups", act: "Groups"},
	"group show": {title: "Find a group", act: "Show"},
}

var ruleTexts = map[string]wording{
	"rule set": {
		act: "Set a rule", title: "Set an access rule",
		lead: "Says which scopes of an MCP server a user, a group or everyone may have. Connected applications " +
			"follow it at their next refresh. After the first rule for a group, users without a rule have no access.",
		done: "The access rule was set.",
	},
	"rule remove": {
		act: "Remove a rule", title: "Remove an access rule",
		lead: "The remaining rules decide. Without any rule, everyone may use all scopes of the MCP server.",
		done: "The access rule was removed.",
	},
	"rule list": {title: "Access rules", act: "Access rules"},
}

var applicationTexts = map[string]wording{
	"application block": {
		act: "Block", title: "Block %s",
		lead: "Disconnects %s from every user and refuses it from now on, also when it registers again.",
		done: "%s is blocked.",
	},
	"application unblock": {
		act: "Unblock", title: "Unblock %s",
		lead: "%s may ask for access again. Users have to approve it anew.", done: "%s is no longer blocked.",
	},
	"application delete": {
		act: "Delete", title: "Delete %s",
		lead: "Disconnects %s from every user and deletes its registrations. It may register again: to prevent that, " +
			"block it.",
		done: "%s was deleted.",
	},
	"application revoke": {
		act: "Revoke access", title: "Revoke all access of %s",
		lead: "Disconnects %s from every user. They can approve it again.", done: "%s no longer has access.",
	},
	"application pause": {
		act: "Pause", title: "Pause %s",
		lead: "Until it is resumed, %s gets no tokens, and its present tokens do not work. Its grants stay.",
		done: "%s is paused.",
	},
	"application resume": {
		act: "Resume", title: "Resume %s",
		lead: "%s works again with the grants that it has, except where a user has paused it.",
		done: "%s is resumed.",
	},
	"application merge": {
		act: "Merge", title: "Merge %s into another application",
		lead: "Treats both as one application, also later registrations. The next page shows both before anything " +
			"changes.",
		done: "%s was merged.",
	},
	"application split": {
		act: "Split off", title: "Split off an application",
		lead: "Makes a merged application separate again.", done: "The application is separate again.",
	},
	"application list": {title: "Applications", act: "Applications"},
	"application show": {title: "Find an application", act: "Show"},
}

var clientTexts = map[string]wording{
	"client add": {
		act: "Add a client", title: "Add a client",
		lead: "For a program that cannot register itself. With redirect URIs users sign in to it; without, it acts " +
			"for itself. Its secret is shown once, on the next page.",
	},
	"client delete": {
		act: "Delete", title: "Delete %s",
		lead: "Deletes the client and ends its access for every user. Its ID can never be used again.",
		done: "%s was deleted.",
	},
	"client rotate-secret": {
		act: "New secret", title: "New secret for %s",
		lead: "Replaces the secret at once. The new one is shown once, on the next page.",
	},
	"client policy": {
		act: "Registration rules", title: "Which clients may connect",
		lead: "The configured rules for clients that register themselves or have a metadata document.",
	},
	"client list": {title: "Clients", act: "Clients"},
	"client show": {title: "Find a client", act: "Show"},
}

var grantTexts = map[string]wording{
	"grant revoke": {
		act: "Revoke", title: "Revoke a grant",
		lead: "The application loses this access at once. The user can approve it again.", done: "The grant was " +
			"revoked.",
	},
	"grant revoke-many": {
		act: "Revoke many", title: "Revoke many grants",
		lead: "Revokes every grant that matches all of the fields. The applications lose access at once.",
		done: "The grants were revoked.",
	},
	"grant revoke-helper": {
		act: "Revoke a sub-agent", title: "Revoke a sub-agent",
		lead: "The sub-agent, and those below it, lose access at once. The application keeps its own.",
		done: "The sub-agent was revoked.",
	},
	"grant finish": {
		act: "Finish a revocation", title: "Finish an interrupted revocation",
		lead: "Completes the list of tokens that a large revocation ended. They have no access already.",
		done: "The revocation is finished.",
	},
	"grant narrow": {
		act: "Reduce scopes", title: "Reduce the scopes of a grant",
		lead: "The application keeps only the scopes that you name. To get others back, the user has to approve " +
			"them.",
		done: "The scopes were reduced.",
	},
	"grant pause": {
		act: "Pause", title: "Pause an application for one user",
		lead: "It gets no access for this user and MCP server until it is resumed.", done: "The grant is paused.",
	},
	"grant resume": {
		act: "Resume", title: "Resume an application for one user",
		lead: "It has access for this user again, without another approval.", done: "The grant is resumed.",
	},
	"grant end-pause": {
		act: "End a pause", title: "End a pause",
		lead: "The user can connect the application again, even if its grant has ended.", done: "The pause has " +
			"ended.",
	},
	"grant pauses": {
		act: "Paused applications", title: "Paused applications",
		lead: "Applications that were paused for a user, newest first. A pause outlives its grant.",
	},
	"grant list":  {title: "Grants", act: "Grants"},
	"grant count": {title: "Number of grants", act: "Count"},
	"grant show":  {title: "Find a grant", act: "Show"},
}

var proposalTexts = map[string]wording{
	"proposal accept": {
		act: "Accept", title: "Accept a proposal", lead: "Carries out the proposed change now, in your name.",
		done: "The proposal was accepted.",
	},
	"proposal decline": {
		act: "Decline", title: "Decline a proposal", lead: "The proposed change is not made.",
		done: "The proposal was declined.",
	},
	"proposal list": {title: "Proposals", act: "Proposals"},
	"proposal show": {title: "Find a proposal", act: "Show"},
}
