// Package storagetest is the contract of package storage as code. Both backends
// run it; the names of its tests are the rules, with the requirement where one applies.
package storagetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

const racers = 32 // how many goroutines compete where one may win

// Run runs the contract. open returns an empty store, which the suite closes.
func Run(t *testing.T, open func(t *testing.T) storage.Store) {
	RunWithoutRaces(t, open)
	runRaces(t, open)
}

// RunWithoutRaces runs what the contract says of verbs that come one after the other.
func RunWithoutRaces(t *testing.T, open func(t *testing.T) storage.Store) {
	for _, suite := range []struct {
		name string
		run  func(t *testing.T, e *env)
	}{
		{"Clients", clients},
		{"Users", users},
		{"Roles", roles},
		{"Setup", setup},
		{"Sessions", sessions},
		{"SignIns", signIns},
		{"Approve", approvals},
		{"Consents", consents},
		{"Withdrawals", withdrawals},
		{"RedeemCode", redemptions},
		{"NamedCodes", namedCodes},
		{"Devices", devices},
		{"RemoteSignIns", remoteSignIns},
		{"PushedRequests", pushedRequests},
		{"KeyedRequests", keyedRequests},
		{"Clearances", clearances},
		{"Tasks", tasks},
		{"Searches", searches},
		{"Audiences", audiences},
		{"RotateRefresh", rotations},
		{"NumberedRefresh", numberings},
		{"LostRefresh", losses},
		{"CutOff", cutOffs},
		{"Cuts", bigCuts},
		{"CutAll", allCuts},
		{"CutProvider", providerCuts},
		{"RevokedBy", revokers},
		{"Events", events},
		{"Notices", notices},
		{"OneTimeLinks", oneTimeLinks},
		{"Facts", facts},
		{"Revocations", revocations},
		{"StatusIndexes", statusIndexes},
		{"Grants", grants},
		{"Connections", connections},
		{"Narrowings", narrowings},
		{"Pauses", pauses},
		{"ProgramKeys", programKeys},
		{"AssertionGrants", assertionGrants},
		{"AssertedPeople", assertedPeople},
		{"AssertedEnds", assertedEnds},
		{"TrustLinks", trustLinks},
		{"CutTrust", trustCuts},
		{"CutAssertions", cutAssertions},
		{"LastCalls", lastCalls},
		{"Attempts", attempts},
		{"Nodes", nodes},
		{"StopEverything", stops},
		{"ChangesInASession", changesInASession},
		{"Resources", resources},
		{"Aliases", aliases},
		{"TrustEntries", trustEntries},
		{"Keys", keys},
		{"KeyLife", keyLife},
		{"KeyCustody", keyCustody},
		{"SharedKeys", sharedKeys},
		{"Once", once},
		{"Leases", leases},
		{"Failures", failures},
		{"Allowances", allowances},
		{"Tries", tries},
		{"Departures", departures},
		{"Arrivals", arrivals},
		{"Links", links},
		{"Unlinks", unlinks},
		{"Homes", homes},
		{"Claims", claims},
		{"DueUpstreams", dueUpstreams},
		{"Preferences", preferences},
		{"UpstreamCustody", upstreamCustody},
		{"UpstreamEnds", upstreamEnds},
		{"UpstreamKeys", upstreamKeys},
		{"BoundGrants", boundGrants},
		{"AccountEnds", accountEnds},
		{"ForgottenUpstreams", forgottenUpstreams},
		{"Handbacks", handbacks},
		{"Outbox", outbox},
		{"AuditLog", auditLog},
		{"AuditSinks", auditSinks},
		{"Proposals", proposals},
		{"Replicas", replicas},
		{"Tools", toolDefinitions},
		{"CertificateFiles", certificateFiles},
		{"Ways", ways},
		{"LastWay", lastWay},
		{"Factors", factors},
		{"RecoveryCodes", recoveryCodes},
		{"WayCustody", wayCustody},
		{"Housekeeping", housekeeping},
		{"Superseded", superseded},
		{"H2 Sweeping", sweeping},
		{"Contexts", contexts},
		{"HostileText", hostileText},
	} {
		t.Run(suite.name, func(t *testing.T) { suite.run(t, newEnv(t, open(t))) })
	}
}

func runRaces(t *testing.T, open func(t *testing.T) storage.Store) {
	for _, race := range []struct {
		name string
		run  func(t *testing.T, e *env)
	}{
		{"OB-10 32 administrators, none of whom wants to be the last one", raceLastAdministrator},
		{"AS-90 one code, 32 redeemers", raceRedeem},
		{"AS-240 one request of a device, 32 decisions", raceDecide},
		{"AS-240 one device code, 32 redeemers", raceDevice},
		{"AS-240 one device that polls 32 times at once", racePoll},
		{"AS-242 one pushed request, 32 browsers", raceOpenPushed},
		{"OB-10 one key, 32 requests", raceBeginKeyed},
		{"RS-217 one clearance, 32 calls", raceClearance},
		{"RS-217 one clearance, 32 decisions", raceDecideClearance},
		{"RS-217 32 clearances asked for at once", raceFullClearances},
		{"RS-215 one task, 32 changes of one version", raceChangeTask},
		{"AS-244 32 operators add one audience", raceAddAudience},
		{"OB-06 one sink, 32 replicas that deliver", raceMoveSink},
		{"OB-10 one proposal, 32 who accept", raceDecideProposal},
		{"OB-10 one replica, 32 times seen", raceSeeReplica},
		{"RS-219 one change of a tool, 32 times seen", raceSeeTool},
		{"RS-219 one offer, accepted and not", raceAcceptTool},
		{"PE-15 one request of a browser, 32 decisions", raceDecideRemote},
		{"PE-15 one approved request, 32 collectors", raceCollect},
		{"PE-15 collectors and the end of everything", raceCollectStop},
		{"AS-94 one refresh token, 32 rotations without grace", raceRotate},
		{"AS-96 one refresh token, 32 rotations within the grace", raceReplay},
		{"one lost refresh token, 32 rotations", raceLost},
		{"two lost refresh tokens, 32 rotations", raceLostTwo},
		{"32 replicas store their first key", raceFirstKey},
		{"32 replicas store the key that they share", raceSharedKey},
		{"32 replicas publish the next key", raceNextKey},
		{"AS-121 32 replicas promote one key, or come late", racePromoteKey},
		{"32 rotations of one signing key", raceRotateKey},
		{"a promotion and the revocation of its key", raceRevokeKey},
		{"32 replicas seal one key again", raceReseal},
		{"32 visitors of one setup link", raceFirstAdmin},
		{"32 uses of one jti", raceSpend},
		{"AS-211 32 uses of one proof", raceProof},
		{"AS-235 32 entries of one id", raceTrust},
		{"PE-16 32 uses of one link", raceOneTimeLink},
		{"PE-16 32 acceptances of one invitation", raceInvitation},
		{"H2 32 replicas take one lease", raceLease},
		{"H2 sweeps and refreshes", raceSweep},
		{"H3 a cut, approvals and refreshes", raceCut},
		{"32 failures are counted", raceFailures},
		{"32 tries that have seen one count: one is taken", raceTries},
		{"32 replicas take what commands did", raceEvents},
		{"approvals of one client by one person", raceApprove},
		{"one form, 32 approvals", raceApproved},
		{"one form, approvals and denials", raceDenied},
		{"an approval and the end of its session", raceCutOff},
		{"PE-09 a disconnection and refreshes", raceDisconnect},
		{"PE-10 narrowings and refreshes", raceNarrow},
		{"PE-09 a pause and refreshes", racePause},
		{"PE-10 stop everything, and changes of the ways in", raceChangeStop},
		{"PE-10 stop everything, approvals, redemptions and refreshes", raceStop},
		{"one sign-in ends in many browsers", raceEndSignIns},
		{"AS-77 approvals of a client that is replaced", raceReplace},
		{"M1 silent approvals and the consent's end", raceForget},
		{"AS-220 one departure, 32 returns", raceDeparture},
		{"AS-219 32 replicas claim one session at a provider", raceClaim},
		{"32 replicas save one session at a provider", raceSave},
		{"32 replicas get one event that ends a session", raceEndOnce},
		{"32 replicas send to one receiver of events", raceTakeDelivery},
		{"OB-04 32 replicas append to a log of one size", raceAppend},
		{"a new person arrives in 32 browsers", raceArrive},
		{"32 new people of one name", raceNames},
		{"32 users ask for one account at a provider", raceLink},
		{"a person unties all accounts at once", raceUnlink},
		{"AS-219 an account is unlinked while its holder signs in with it", raceUnlinkSignIn},
		{"32 learn of one end at the provider", raceEnd},
		{"PE-07 32 uses of one counter", raceUse},
		{"PE-03 a person removes all ways in at once", raceLast},
		{"PE-06 one recovery code, 32 uses", raceRecovery},
		{"PE-09 32 replicas note calls of the same grants", raceNote},
		{"32 replicas take from the same allowances", raceAllowances},
		{"AS-243 32 nodes where few have room", raceAddNode},
		{"AS-243 nodes are added while one above is cut", raceCutNode},
		{"PE-17 32 keys for programs of one person", raceMakeKey},
		{"PE-17 one key for a program, made 32 times", raceSameKey},
		{"PE-17 keys for programs, and everything stops", raceKeyCutOff},
		{"AS-188 one jti, 32 grants", raceAssertion},
		{"AS-192 32 first assertions about one person", raceAssertedPerson},
		{"AS-232 assertions about a person who is disabled", raceAssertedEnd},
		{"AS-232 assertions by a trust entry that is disabled", raceTrustEnd},
		{"32 ways are added where few have room", raceAdd},
		{"AS-239 32 resources want one alias", raceAlias},
		{"AS-239 aliases of a resource that is removed", raceRemoveAlias},
		{"AS-219 an approval and the end of the session at the provider", raceEndApprove},
		{"AS-219 an arrival and the end of the account", raceArriveCutOff},
	} {
		t.Run("Race/"+race.name, func(t *testing.T) { race.run(t, newEnv(t, open(t))) })
	}
}

// env is a store and what the tests put into it.
type env struct {
	s   storage.Store
	ctx context.Context
	now time.Time
}

func newEnv(t *testing.T, s storage.Store) *env {
	t.Cleanup(func() { check(t, s.Close()) })
	return &env{s: s, ctx: context.Background(), now: today()}
}

// today is when the tests take place.
func today() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 123e6, time.UTC) }

func randomHash() storage.Hash { return secrets.Hash(secrets.Token("")) }

// person is an account with a session.
type person struct {
	storage.User
	session storage.Hash
}

func (e *env) person(t testing.TB) person {
	t.Helper()
	id := secrets.ID("usr_")
	p := person{User: storage.User{ID: id, Name: "Name" + id, CreatedAt: e.now}, session: randomHash()}
	check(t, e.s.CreateUser(e.ctx, p.User))
	e.signIn(t, p)
	return p
}

func (e *env) signIn(t testing.TB, p person) {
	t.Helper()
	check(t, e.s.PutSession(e.ctx, storage.Session{Hash: p.session, UserID: p.ID,
		AuthTime: e.now, CreatedAt: e.now, ExpiresAt: e.now.Add(24 * time.Hour)},
		storage.SignInStart{PasswordHash: p.PasswordHash}))
}

func (e *env) client() storage.Client {
	return storage.Client{ID: secrets.ID("mcp_"), Name: "An app", RedirectURIs: []string{"http://127.0.0.1/cb"},
		GrantTypes: []string{"authorization_code", "refresh_token"}, AuthMethod: "none",
		Source: storage.SourceDynamic, CreatedAt: e.now}
}

// approval is a person's approval of a new client, not stored yet.
func (e *env) approval(p person) storage.Approval {
	cl := e.client()
	return storage.Approval{
		Session: p.session, Client: &cl, Now: e.now,
		Grant: storage.Grant{
			ID: secrets.ID("gr_"), ClientID: cl.ID, UserID: p.ID, Scopes: oauth.Scopes{"mcp", "notes:write"},
			Resource: "https://mcp.example/mcp", AuthTime: e.now, CreatedAt: e.now,
			ExpiresAt: e.now.Add(100 * 24 * time.Hour)},
		Code: storage.Code{
			Hash: randomHash(), RedirectURI: "http://127.0.0.1:3210/cb", Challenge: "challenge",
			ExpiresAt: e.now.Add(time.Minute),
		},
	}
}

// approved stores an approval by a new person.
func (e *env) approved(t testing.TB) storage.Approval {
	t.Helper()
	a := e.approval(e.person(t))
	check(t, e.s.Approve(e.ctx, a))
	return a
}

// redemption is the request that matches an approval.
func (e *env) redemption(a storage.Approval) storage.RedeemCode {
	refresh := new(storage.Refresh)
	*refresh = e.refresh()
	return storage.RedeemCode{
		Hash: a.Code.Hash, GrantID: a.Grant.ID, ClientID: a.Grant.ClientID, Challenge: a.Code.Challenge,
		RedirectURI: a.Code.RedirectURI, Resource: a.Grant.Resource, Now: e.now,
		Refresh: refresh}
}

// granted redeems a new approval and returns it with its first refresh token.
func (e *env) granted(t testing.TB) (storage.Approval, storage.PresentedRefresh) {
	t.Helper()
	a := e.approved(t)
	return a, e.redeem(t, e.redemption(a))
}

// redeem redeems a code and returns the first refresh token.
func (e *env) redeem(t testing.TB, r storage.RedeemCode) storage.PresentedRefresh {
	t.Helper()
	out, err := e.s.RedeemCode(e.ctx, r)
	check(t, err)
	return made(*r.Refresh, out.Grant.ID, out.Generation, r.Now)
}

// refresh is a refresh token about to be made good.
func (e *env) refresh() storage.Refresh {
	return storage.Refresh{Hash: randomHash(), Secret: randomHash(), ExpiresAt: e.now.Add(30 * 24 * time.Hour)}
}

// made is the token that the store has made good.
func made(r storage.Refresh, grantID string, generation int64, at time.Time) storage.PresentedRefresh {
	if generation == 0 {
		return storage.HashedRefresh(r.Hash)
	}
	return storage.NumberedRefresh{
		GrantID: grantID, Generation: generation, IssuedAt: at, ExpiresAt: at.Add(30 * 24 * time.Hour),
		Secret: r.Secret,
	}
}

// successor is the token that a rotation has made good.
func successor(r storage.RotateRefresh, out storage.Rotation) storage.PresentedRefresh {
	if t, ok := r.Token.(storage.NumberedRefresh); ok {
		r.Next.Secret = t.Secret
	}
	return made(r.Next, out.Grant.ID, out.Generation, out.RotatedAt)
}

// unknown is a token of no grant.
func unknown() storage.PresentedRefresh { return storage.HashedRefresh(randomHash()) }

// rotation is the request that rotates a refresh token of an approval.
func (e *env) rotation(a storage.Approval, token storage.PresentedRefresh) storage.RotateRefresh {
	return storage.RotateRefresh{Token: token, ClientID: a.Grant.ClientID, Resource: a.Grant.Resource,
		Next: e.refresh(), Sealed: []byte(secrets.Token("sealed ")), Grace: time.Minute, Now: e.now}
}

func (e *env) rotate(t testing.TB, r storage.RotateRefresh) storage.Rotation {
	t.Helper()
	out, err := e.s.RotateRefresh(e.ctx, r)
	check(t, err)
	return out
}

// wantLive checks that a grant is, or is not, good: for introspection and refresh.
func (e *env) wantLive(t testing.TB, a storage.Approval, live bool) {
	t.Helper()
	got, err := e.s.TokenActive(e.ctx,
		storage.TokenKey{TokenID: "t", GrantID: a.Grant.ID, ClientID: a.Grant.ClientID, Now: e.now})
	check(t, err)
	if got.Active != live {
		t.Errorf("the grant is active: got %v, want %v", got.Active, live)
	}
}

func (e *env) wantRefreshRefused(t testing.TB, a storage.Approval, token storage.PresentedRefresh) {
	t.Helper()
	_, err := e.s.RotateRefresh(e.ctx, e.rotation(a, token))
	wantErr(t, err, storage.ErrRevoked)
	_, _, err = e.s.RefreshToken(e.ctx, token, e.now)
	wantErr(t, err, storage.ErrNotFound)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got error %v, want %v", got, want)
	}
}

// same compares records; an empty list equals none.
func same(t testing.TB, got, want any) {
	t.Helper()
	// The store assigns the status index; statusIndexes looks at it.
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(storage.Grant{}, "StatusIndex")); d != "" {
		t.Errorf("differs (-want +got):\n%s", d)
	}
}
