package streams

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"time"

	"github.com/landfall/landfall/events"
)

// Role is what a login may do.
type Role string

// Roles.
const (
	RoleBackend    Role = "backend"    // its heartbeat, its requests and answers; no fact, no JetStream API
	RoleDispatcher Role = "dispatcher" // appends facts, reads everything
	RoleAuditor    Role = "auditor"    // reads everything, writes nothing
	RoleArchivist  Role = "archivist"  // as the auditor, and takes the leases of archives
	RoleOperator   Role = "operator"   // everything in the store; the carrier itself and its CLI
	RoleProgram    Role = "program"    // asks the micro service, with a token of the API; sees and writes nothing else
)

// Permissions are the subjects a login may use. What is not listed is refused.
type Permissions struct {
	Publish   []string
	Subscribe []string
	// AnswerFor is how long a request that was received may be answered; 0: never.
	AnswerFor time.Duration
}

// IdentitiesSubject is where the carrier says that it obeys what control says up to a sequence
// (the body, in decimal): whom it lets in. It answers the operators alone.
const IdentitiesSubject = "landfall.store.identities"

// answerFor is longer than any caller waits.
const answerFor = 2 * time.Minute

// readAPI are the JetStream calls of one who reads through a leader or a pull consumer.
// Stream names are one token, so "*" is every bucket of the network.
var readAPI = []string{
	"$JS.ACK.>", // nobody acknowledges; without it the server would remember each delivery as a request to be answered, for answerFor, and walk through all of them every second
	"$JS.API.INFO",
	"$JS.API.STREAM.INFO.*",
	"$JS.API.STREAM.MSG.GET.*",
	"$JS.API.CONSUMER.CREATE.*.>",
	"$JS.API.CONSUMER.INFO.*.*",
	"$JS.API.CONSUMER.MSG.NEXT.*.*",
	"$JS.API.CONSUMER.DELETE.*.*",
}

// dispatcherBuckets are those whose facts dispatchers write; control is the operator's.
var dispatcherBuckets = []events.Bucket{
	events.Transfers, events.Sessions, events.Audit, events.Checkpoints, events.Limits, events.Routes, events.Leases,
}

// PermissionsOf gives the permissions of a role for the host id.
func PermissionsOf(role Role, id events.HostID) Permissions {
	inbox := InboxPrefix(role, id) + ".>"
	switch role {
	case RoleBackend:
		return Permissions{
			Publish: []string{
				events.Fleet.Subject(events.BackendKey(id)),
				events.Fleet.Subject(events.InstanceKeys(id)),
				events.NewsOf(id, "*"),
				events.AskOf(id, "*"),
			},
			Subscribe: []string{events.ToBackend(id, ">"), inbox},
			AnswerFor: answerFor,
		}
	case RoleDispatcher:
		return dispatcherPermissions(id, inbox)
	case RoleAuditor:
		return Permissions{Publish: readAPI, Subscribe: append([]string{inbox}, auditedSubjects...)}
	case RoleArchivist:
		return Permissions{Publish: append([]string{events.Leases.Subject("archive.>")}, readAPI...), Subscribe: append([]string{inbox}, auditedSubjects...)}
	case RoleProgram:
		return Permissions{Publish: []string{ProgramsPrefix + ">", "$SRV.>"}, Subscribe: []string{inbox}}
	case RoleOperator:
		return Permissions{Publish: []string{"$KV.>", "$JS.ACK.>", "$JS.API.>", ServersSubject, "landfall.>", "_INBOX.>"}, Subscribe: []string{inbox, "landfall.>", "$SRV.>"}, AnswerFor: answerFor}
	}
	return Permissions{}
}

// auditedSubjects is what one who reads may listen to: not to programs, whose requests carry tokens.
var auditedSubjects = []string{"landfall.backend.>", "landfall.dispatcher.>", "landfall.ask.>", "landfall.news.>", "landfall.trigger.>", "landfall.store.>"}

// dispatcherPermissions: a host may run a dispatcher and a backend under one id and one
// login (direct mode), so it also has what a backend of that id has.
func dispatcherPermissions(id events.HostID, inbox string) Permissions {
	p := Permissions{
		Publish: append([]string{
			events.Fleet.Subject(events.ProxyKey(id)),
			events.Fleet.Subject(events.BackendKey(id)),
			events.Fleet.Subject(events.InstanceKeys(id)),
			events.ToBackend("*", "*"),
			events.ToDispatcher("*", "*"),
			events.AskOf(id, "*"),
			events.NewsOf(id, "*"),
			events.TriggerOf("*"),
			DurableSubject,
		}, readAPI...),
		Subscribe: []string{
			inbox,
			events.ToBackend(id, ">"),
			events.ToDispatcher(id, ">"),
			events.AskOf("*", "*"),
			events.NewsOf("*", "*"),
			events.TriggerOf("*"),
			ProgramsPrefix + ">",
			"$SRV.>",
		},
		AnswerFor: answerFor,
	}
	for _, b := range dispatcherBuckets {
		p.Publish = append(p.Publish, b.Subject(">"))
	}
	return p
}

// InboxPrefix is where answers to a host arrive. Nobody else may listen there.
func InboxPrefix(role Role, id events.HostID) string {
	if id == "" {
		id = "anonymous"
	}
	return "_INBOX." + string(role) + "." + string(id)
}

// Login derives a host's login in a network that only shares a secret. Whoever has the
// secret has every login: it protects from outsiders, not from one another's hosts. The name
// ends with the id of the secret: during a rotation the logins of both are good.
func Login(secret []byte, role Role, id events.HostID) (user, password string) {
	user = string(role) + "." + string(id)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("landfall login v1 " + user))
	sum := sha256.Sum256(secret)
	user += "." + hex.EncodeToString(sum[:4])
	return user, base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
