package mcpresource

import "github.com/mcp-authd/mcp-authd/oauth"

// Outcome says how a decision or a call ended. Its text is what logs and audits hold; it does not
// change.
type Outcome string

// The outcomes of requests that the guard lets through. An Event has OutcomeAllowed when the
// request goes on, and OutcomeEnded if its token is revoked under it, or expires before anything is
// answered; a CallEvent has the others.
const (
	OutcomeAllowed Outcome = "allowed"
	OutcomeOK      Outcome = "ok"
	OutcomeError   Outcome = "error"   // the server answered so
	OutcomeAborted Outcome = "aborted" // the handler did not return, or without an answer when its client had left
	OutcomeEnded   Outcome = "ended"   // the token was revoked or expired, or its status was out of reach
	OutcomeStopped Outcome = "stopped" // the server stopped before it had answered
	OutcomeTimeout Outcome = "timeout" // Limits.Timeout or Overtime, or that of a tool
)

// The outcomes of requests that the guard refuses, in the order of its checks. An Event and a
// CallEvent have the same one.
const (
	OutcomeHost              Outcome = "host"               // not of this resource, see Config.Hosts
	OutcomeOrigin            Outcome = "origin"             // see Config.Origins
	OutcomeMisconfigured     Outcome = "misconfigured"      // one guard stands behind another
	OutcomeUnauthenticated   Outcome = "unauthenticated"    // there is no token
	OutcomeMalformed         Outcome = "malformed"          // the Authorization header is
	OutcomeInvalidToken      Outcome = "invalid_token"      // or it is for another server, or lacks its proof
	OutcomeUnavailable       Outcome = "unavailable"        // this cannot be judged now
	OutcomeLimited           Outcome = "limited"            // see Limits
	OutcomeMethod            Outcome = "method"             // of HTTP
	OutcomeTooLarge          Outcome = "too_large"          // the body, or the result of a tool
	OutcomeTooSlow           Outcome = "too_slow"           // the body
	OutcomeCrowded           Outcome = "crowded"            // see Bodies
	OutcomeAmbiguous         Outcome = "ambiguous"          // headers or body, see ErrAmbiguousBody
	OutcomeInsufficientScope Outcome = "insufficient_scope" // or no scope would help
	// The person has not proved who they are as Requirement.Authentication says.
	OutcomeInsufficientAuthentication Outcome = "insufficient_user_authentication"
	OutcomeForbidden                  Outcome = "forbidden" // by Config.Check, or for the application itself alone
	OutcomeSession                    Outcome = "session"   // it belongs to another caller
	// The client was told where a person can approve the call, see Clearance.
	OutcomeClearanceRequired Outcome = oauth.OutcomeClearanceRequired
	// The person has denied the call, or no person can be asked about it.
	OutcomeClearanceRefused Outcome = "clearance_refused"
)

// The outcomes of calls that only an adapter can tell, which sees the decoded call.
const (
	OutcomeToolError            Outcome = "tool_error"
	OutcomeInputRequired        Outcome = "input_required" // of the person, see InteractionRequiredError
	OutcomeInvalidInput         Outcome = "invalid_input"  // arguments that do not fit the schema, or such a URI
	OutcomeInvalidState         Outcome = "invalid_state"  // see Sealer
	OutcomeUnknownMethod        Outcome = "unknown_method"
	OutcomeUndeclaredCapability Outcome = "undeclared_capability" // of the client
	OutcomePanic                Outcome = "panic"
	// OutcomeTask is of a call that became a task. Another event, with its time and outcome, is for its end.
	OutcomeTask Outcome = "task"
)
