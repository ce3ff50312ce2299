package mcpresource

import "github.com/mcp-authd/mcp-authd/oauth"

// Outcome is the result of a decision or call. Its text appears in logs and is stable.
type Outcome string

// Outcomes of requests that the guard allows. An Event has OutcomeAllowed when the request
// proceeds. It has OutcomeEnded if the token is revoked during the request, or expires before a
// response. A CallEvent has the others.
const (
	OutcomeAllowed Outcome = "allowed"
	OutcomeOK      Outcome = "ok"
	OutcomeError   Outcome = "error"   // the server answered with an error
	OutcomeAborted Outcome = "aborted" // the handler panicked, or ended silently after its client left
	OutcomeEnded   Outcome = "ended"   // the token was revoked or expired, or its status was unavailable
	OutcomeStopped Outcome = "stopped" // the server stopped before the response
	OutcomeTimeout Outcome = "timeout" // Limits.Timeout or Overtime, or the timeout of a tool
)

// Outcomes of requests that the guard refuses, in the order of its checks. An Event and a CallEvent
// have the same one.
const (
	OutcomeHost              Outcome = "host"               // not a host of this resource, see Config.Hosts
	OutcomeOrigin            Outcome = "origin"             // see Config.Origins
	OutcomeMisconfigured     Outcome = "misconfigured"      // a guard is behind another guard
	OutcomeUnauthenticated   Outcome = "unauthenticated"    // without a token
	OutcomeMalformed         Outcome = "malformed"          // the Authorization header is malformed
	OutcomeInvalidToken      Outcome = "invalid_token"      // including tokens for another server and missing proofs
	OutcomeUnavailable       Outcome = "unavailable"        // the decision is not possible now
	OutcomeLimited           Outcome = "limited"            // see Limits
	OutcomeMethod            Outcome = "method"             // unknown HTTP method
	OutcomeTooLarge          Outcome = "too_large"          // the body, or the result of a tool
	OutcomeTooSlow           Outcome = "too_slow"           // the body
	OutcomeCrowded           Outcome = "crowded"            // see Bodies
	OutcomeAmbiguous         Outcome = "ambiguous"          // headers or body, see ErrAmbiguousBody
	OutcomeInsufficientScope Outcome = "insufficient_scope" // or no scope would help
	// The user's authentication does not satisfy Requirement.Authentication.
	OutcomeInsufficientAuthentication Outcome = "insufficient_user_authentication"
	OutcomeForbidden                  Outcome = "forbidden" // by Config.Check, or only the application itself may
	OutcomeSession                    Outcome = "session"   // of another caller
	// The client was directed to the approval page, see Clearance.
	OutcomeClearanceRequired Outcome = oauth.OutcomeClearanceRequired
	// The approver denied the call, or it cannot be approved.
	OutcomeClearanceRefused Outcome = "clearance_refused"
)

// Outcomes of calls that only adapters report, because they see the decoded call.
const (
	OutcomeToolError            Outcome = "tool_error"
	OutcomeInputRequired        Outcome = "input_required" // from the user, see InteractionRequiredError
	OutcomeInvalidInput         Outcome = "invalid_input"  // arguments or a URI that do not match the schema
	OutcomeInvalidState         Outcome = "invalid_state"  // see Sealer
	OutcomeUnknownMethod        Outcome = "unknown_method"
	OutcomeUndeclaredCapability Outcome = "undeclared_capability" // a capability that the client did not declare
	OutcomePanic                Outcome = "panic"
	// OutcomeTask means that a call became a task. Another event reports the task's end, with its
	// time and outcome.
	OutcomeTask Outcome = "task"
)
