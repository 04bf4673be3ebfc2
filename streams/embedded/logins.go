package embedded

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/landfall/landfall/streams"
)

// Logins writes what nats-servers that are not ours must know to be the store of a network:
// a part of their configuration, with an account of the network's own, a login for each of
// users, and what it may do. It holds every password, and of keys the public half. Users must have names of their own.
func Logins(network string, users []User) string {
	account := strconv.Quote("landfall-" + network)
	var b strings.Builder
	fmt.Fprintf(&b, "accounts {\n  %s {\n    jetstream: enabled\n    users: [\n", account)
	users = slices.SortedFunc(slices.Values(users), func(a, b User) int { return strings.Compare(a.Name+a.Key, b.Name+b.Key) })
	for _, u := range users {
		p := streams.PermissionsOf(u.Role, u.ID)
		if u.Key != "" {
			fmt.Fprintf(&b, "      # %s %s\n      { nkey: %q, permissions: {\n", u.Role, u.ID, u.Key)
		} else {
			fmt.Fprintf(&b, "      { user: %q, password: %q, permissions: {\n", u.Name, u.Password)
		}
		fmt.Fprintf(&b, "          publish: { allow: [ %s ] }\n          subscribe: { allow: [ %s ] }\n", quoted(p.Publish), quoted(p.Subscribe))
		if p.AnswerFor > 0 {
			fmt.Fprintf(&b, "          allow_responses: { max: 1, expires: %q }\n", p.AnswerFor)
		}
		fmt.Fprint(&b, "      } }\n")
	}
	fmt.Fprintf(&b, "    ]\n    imports: [ { service: { account: SYS, subject: %q } } ]\n  }\n", streams.ServersSubject)
	fmt.Fprintf(&b, "  SYS { exports: [ { service: %q, response_type: stream, accounts: [ %s ] } ] }\n}\nsystem_account: SYS\n", streams.ServersSubject, account)
	return b.String()
}

func quoted(subjects []string) string {
	out := make([]string, len(subjects))
	for i, s := range subjects {
		out[i] = strconv.Quote(s)
	}
	return strings.Join(out, ", ")
}
