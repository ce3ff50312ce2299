package auditformat

import (
	"cmp"
	"encoding/hex"
	"strings"
)

const (
	ocsfVersion = "1.6.0"
	product     = "mcp-authd"
)

// event is an event of OCSF, of any class. Members that a class does not have are omitted.
type event struct {
	ActivityID   int    `json:"activity_id"`
	ActivityName string `json:"activity_name"`
	CategoryUID  int    `json:"category_uid"`
	CategoryName string `json:"category_name"`
	ClassUID     class  `json:"class_uid"`
	ClassName    string `json:"class_name"`
	TypeUID      int    `json:"type_uid"`
	TypeName     string `json:"type_name"`

	Time         int64    `json:"time"`
	SeverityID   Severity `json:"severity_id"`
	Severity     string   `json:"severity"`
	StatusID     int      `json:"status_id"`
	Status       string   `json:"status"`
	StatusCode   string   `json:"status_code,omitempty"`
	StatusDetail string   `json:"status_detail,omitempty"`
	Message      string   `json:"message"`

	Metadata     metadata   `json:"metadata"`
	Actor        *actor     `json:"actor,omitempty"`
	User         *user      `json:"user,omitempty"`
	Privileges   []string   `json:"privileges,omitempty"`
	Entity       *entity    `json:"entity,omitempty"`
	API          *api       `json:"api,omitempty"`
	Resources    []resource `json:"resources,omitempty"`
	Service      *named     `json:"service,omitempty"`
	SrcEndpoint  *endpoint  `json:"src_endpoint,omitempty"`
	AuthProtocol *int       `json:"auth_protocol_id,omitempty"`

	RawDataHash fingerprint       `json:"raw_data_hash"`
	Unmapped    map[string]string `json:"unmapped,omitempty"`
}

type metadata struct {
	Version     string `json:"version"`
	Product     maker  `json:"product"`
	UID         string `json:"uid"`
	Sequence    int64  `json:"sequence"`
	EventCode   string `json:"event_code"`
	LogName     string `json:"log_name"`
	Correlation string `json:"correlation_uid,omitempty"`
}

type maker struct {
	Name    string `json:"name"`
	Vendor  string `json:"vendor_name"`
	Version string `json:"version,omitempty"`
}

type actor struct {
	User    *user  `json:"user,omitempty"`
	AppUID  string `json:"app_uid,omitempty"`
	AppName string `json:"app_name,omitempty"`
	Session *named `json:"session,omitempty"`
}

type user struct {
	UID    string `json:"uid,omitempty"`
	Name   string `json:"name,omitempty"`
	TypeID int    `json:"type_id"`
	Type   string `json:"type"`
}

type entity struct {
	UID    string `json:"uid,omitempty"`
	Name   string `json:"name,omitempty"`
	TypeID int    `json:"type_id"`
	Type   string `json:"type"`
}

type api struct {
	Operation string   `json:"operation"`
	Service   *named   `json:"service,omitempty"`
	Response  *outcome `json:"response,omitempty"`
}

type outcome struct {
	Message string `json:"message"`
}

type resource struct {
	UID  string `json:"uid"`
	Type string `json:"type"`
}

type named struct {
	UID  string `json:"uid,omitempty"`
	Name string `json:"name,omitempty"`
}

type endpoint struct {
	IP   string `json:"ip,omitempty"`
	Name string `json:"svc_name,omitempty"`
}

// fingerprint is a hash. Leaves use SHA-256.
type fingerprint struct {
	AlgorithmID int    `json:"algorithm_id"`
	Algorithm   string `json:"algorithm"`
	Value       string `json:"value"`
}

// ocsf returns an entry as an event of OCSF.
func ocsf(s Source, e Entry) event {
	e = e.visible()
	m, f := meaningOf(e), newFields(e)
	out := event{
		ActivityID: m.activity, ActivityName: activityName(m), CategoryUID: int(m.class) / 1000,
		CategoryName: categories[int(m.class)/1000], ClassUID: m.class, ClassName: classes[m.class],
		TypeUID: int(m.class)*100 + m.activity, Time: e.At.UnixMilli(), SeverityID: m.severity,
		Severity: severities[m.severity], StatusID: 1, Status: "Success", StatusCode: f.take("error"),
		StatusDetail: f.take("reason"), Message: m.title,
		Metadata: metadata{
			Version: ocsfVersion, Product: maker{product, product, s.Version}, UID: e.Leaf.String(), Sequence: e.Index,
			EventCode: e.Event, LogName: s.host() + "/audit", Correlation: f.take("request_id"),
		},
		RawDataHash: fingerprint{3, "SHA-256", hex.EncodeToString(e.Leaf[:])},
	}
	out.TypeName = out.ClassName + ": " + out.ActivityName
	if m.failed {
		out.StatusID, out.Status = 2, "Failure"
	}
	out.people(m, f)
	out.things(s, m, f)
	switch {
	case m.class == baseEvent: // has no such member
	case f.all["remote"] != "":
		out.SrcEndpoint = &endpoint{IP: f.take("remote")}
	case m.class == apiActivity:
		out.SrcEndpoint = &endpoint{Name: product}
	}
	out.Unmapped = f.left
	return out
}

// people sets the actor and the affected user.
func (out *event) people(m meaning, f *fields) {
	person := &user{UID: f.take("user"), Name: f.take("user_name"), TypeID: 1, Type: "User"}
	app, grant := named{f.take("client_id"), cmp.Or(f.take("client_name"), f.all["shown_client"])}, f.take("grant")
	if person.UID == "" && person.Name == "" {
		person = nil
	}
	who := actor{User: person, AppUID: app.UID, AppName: app.Name}
	if grant != "" {
		who.Session = &named{UID: grant}
	}
	if f.all["by"] == "operator" {
		who.User = &user{Name: f.take("by"), TypeID: 2, Type: "Admin"}
		if m.class == entities || m.class == apiActivity {
			f.give("user", "user_name") // not about a user
		}
	}
	if who != (actor{}) && m.class != baseEvent {
		out.Actor = &who
	}
	switch m.class {
	case accountChange, authentication, userAccess: // these are about a user
		switch {
		case person != nil:
			out.User = person
		case app.UID != "":
			out.User = &user{UID: app.UID, Name: app.Name, TypeID: 4, Type: "Service"}
		default:
			out.User = &user{Name: "unknown", TypeID: 0, Type: "Unknown"}
		}
	case apiActivity:
		if out.Actor == nil {
			out.Actor = &actor{AppName: "unknown"}
		}
	case baseEvent:
		f.give("user", "user_name", "client_id", "client_name", "grant", "by")
	}
}

// things sets the objects of the event.
func (out *event) things(s Source, m meaning, f *fields) {
	switch m.class {
	case authentication:
		oauth := 6
		out.AuthProtocol = &oauth
		out.Service = &named{UID: s.Issuer, Name: product}
		if r := f.take("resource"); r != "" {
			out.Service = &named{UID: r}
		}
	case userAccess:
		out.Privileges = strings.Fields(f.take("scope"))
		if len(out.Privileges) == 0 {
			out.Privileges = []string{"*"} // OCSF requires one, and the entry names none, so it means all
		}
	case apiActivity:
		out.API = &api{Operation: "tools/call " + f.take("tool"), Response: &outcome{Message: f.take("outcome")}}
	case entities:
		out.Entity = managed(m, f)
	}
	if m.class == userAccess || m.class == apiActivity {
		if r := f.take("resource"); r != "" {
			out.Resources = []resource{{UID: r, Type: "MCP server"}}
		}
	}
}

// managed returns the changed entity.
func managed(m meaning, f *fields) *entity {
	out := &entity{TypeID: other, Type: m.entity}
	switch m.entity {
	case "grant":
		out.UID = f.all["grant"]
	case "client":
		out.UID, out.Name = f.all["client_id"], f.all["client_name"]
	case "MCP server":
		out.UID = f.take("resource")
	case "trust entry":
		out.UID = f.take("trust")
	case "audience":
		out.UID = f.take("audience")
	case "signing key":
		out.UID = f.take("kid")
	}
	if out.UID == "" && out.Name == "" {
		out.Name = m.entity
	}
	return out
}

// give puts fields back among those without a place.
func (f *fields) give(names ...string) {
	for _, name := range names {
		if value := f.all[name]; value != "" {
			f.left[name] = value
		}
	}
}

func activityName(m meaning) string {
	if name := activities[m.class][m.activity]; name != "" {
		return name
	}
	return m.title // for activity 99, our own name
}

var (
	categories = map[int]string{0: "Uncategorized", 3: "Identity & Access Management", 6: "Application Activity"}
	classes    = map[class]string{
		baseEvent: "Base Event", accountChange: "Account Change", authentication: "Authentication",
		entities: "Entity Management", userAccess: "User Access Management", apiActivity: "API Activity",
	}
	severities = map[Severity]string{Informational: "Informational", Low: "Low", Medium: "Medium", High: "High"}
	activities = map[class]map[int]string{
		accountChange: {
			1: "Create", 2: "Enable", 3: "Password Change", 4: "Password Reset", 5: "Disable", 6: "Delete",
			10: "MFA Factor Enable", 11: "MFA Factor Disable",
		},
		authentication: {
			1: "Logon", 2: "Logoff", 4: "Service Ticket Request", 5: "Service Ticket Renew", 6: "Preauth",
		},
		entities: {
			1: "Create", 3: "Update", 4: "Delete", 6: "Enroll", 8: "Enable", 9: "Disable", 10: "Activate",
			11: "Deactivate", 12: "Suspend", 13: "Resume",
		},
		userAccess: {1: "Assign Privileges", 2: "Revoke Privileges"},
	}
)
