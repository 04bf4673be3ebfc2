package actors

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
)

// told says under which families of messages a code can reach a player, or why it never does.
// A new code is named here before the tests pass.
var told = map[events.Code]struct {
	families []string
	never    string
}{
	events.KillSwitch:    {families: []string{"refused", "failed"}},
	events.TransportDown: {families: []string{"refused"}},
	events.LogFull:       {families: []string{"refused"}},
	events.NotHere:       {families: []string{"refused"}},
	events.AlreadyActive: {families: []string{"refused"}},
	events.AlreadyMoving: {families: []string{"refused"}},
	events.BadRequest:    {families: []string{"refused"}},
	events.AuthFailed:    {families: []string{"refused"}},
	events.Disabled:      {families: []string{"refused"}},
	events.WrongAccounts: {families: []string{"refused"}},
	events.LineFull:      {families: []string{"refused", "failed"}},
	events.NoPermission:  {families: []string{"refused"}},
	events.Resting:       {families: []string{"refused"}},
	events.LimitReached:  {families: []string{"refused"}},
	events.RateLimited:   {families: []string{"refused"}},

	events.RegionMissing:        {families: []string{"refused", "failed"}},
	events.Paused:               {families: []string{"failed"}},
	events.BypassBound:          {families: []string{"failed"}},
	events.ClientTooOld:         {families: []string{"failed"}},
	events.ProtocolAbsent:       {families: []string{"failed"}},
	events.NoCandidate:          {families: []string{"failed"}},
	events.PlayerOffline:        {families: []string{"failed"}},
	events.PlayerLeft:           {families: []string{"failed"}},
	events.GraceOver:            {families: []string{"failed"}},
	events.AgedOut:              {families: []string{"failed"}},
	events.NotArrived:           {families: []string{"failed"}},
	events.PlacementUnconfirmed: {families: []string{"failed"}},
	events.AttemptsExhausted:    {families: []string{"failed"}},
	events.MoveRefused:          {families: []string{"failed"}},
	events.PromiseGone:          {families: []string{"failed"}},
	events.Unreachable:          {families: []string{"failed"}},
	events.KeyFull:              {families: []string{"refused", "failed"}},
	events.Cancel:               {families: []string{"failed"}},

	events.WrongPlayer:  {families: []string{"token"}},
	events.TokenUnknown: {families: []string{"token"}},
	events.TokenSpent:   {families: []string{"token"}},

	events.ScopeMissing: {never: toPrograms},
	events.KeyReused:    {never: toPrograms},
	events.NoCapacity:   {never: toPrograms},
	events.BadScene:     {never: toPrograms},
	events.EndpointDown: {never: aboutHost},

	events.OK:       {never: "all is well"},
	events.Replaced: {never: "the player reads transfer.replaced"},
	events.Accepted: {never: "the player reads transfer.accepted"},
	events.Active:   {never: "the player reads transfer.active"},
	events.NotKnown: {never: "between hosts; who cancels nothing reads transfer.none"},

	events.Stale:          {never: aboutHost},
	events.NotReady:       {never: aboutHost},
	events.NotAccepting:   {never: aboutHost},
	events.AddressChanged: {never: aboutHost},
	events.Drained:        {never: aboutHost},
	events.OnCooldown:     {never: aboutHost},
	events.LobbyOnly:      {never: aboutHost},
	events.NoneKept:       {never: aboutHost},
	events.Excluded:       {never: aboutHost},
	events.SchemaRange:    {never: aboutHost},
	events.Waiting:        {never: aboutHost},

	events.NoCoordinate:     {never: betweenHosts},
	events.Full:             {never: betweenHosts},
	events.Paced:            {never: betweenHosts},
	events.WrongIncarnation: {never: betweenHosts},
	events.Unsafe:           {never: betweenHosts},
	events.NoAnswer:         {never: betweenHosts},
	events.Promised:         {never: betweenHosts},
	events.Place:            {never: betweenHosts},
	events.NoPlace:          {never: betweenHosts},
	events.WaitABit:         {never: betweenHosts},
	events.Sent:             {never: betweenHosts},
	events.TooOld:           {never: betweenHosts},
	events.Refused:          {never: betweenHosts},
	events.NotSent:          {never: betweenHosts},
	events.WrongServer:      {never: betweenHosts},

	events.TTLPassed:      {never: "another attempt follows, or the transfer ends with a code of its own"},
	events.NewIncarnation: {never: "another attempt follows"},
	events.LostRace:       {never: "the attempt that was faster is told"},
	events.PlayerDetached: {never: "the player is away"},
	events.Moved:          {never: "nobody is refused with it"},

	events.RouteUnknown:   {never: noRoute},
	events.RouteTaken:     {never: noRoute},
	events.RouteAmbiguous: {never: noRoute},
	events.RouteOver:      {never: noRoute},
	events.RouteBounced:   {never: "the player stays where the connection led"},

	events.BadSignature: {never: inTheLog},
	events.LogChanged:   {never: inTheLog},
	events.UnknownKey:   {never: inTheLog},
	events.WrongActor:   {never: inTheLog},
	events.WrongPrev:    {never: inTheLog},
	events.Impossible:   {never: inTheLog},
	events.Malformed:    {never: inTheLog},
	events.UnknownType:  {never: inTheLog},
	events.Stray:        {never: inTheLog},
	events.DuplicateID:  {never: inTheLog},
}

const (
	aboutHost    = "why one destination was not chosen: stands in the decision"
	betweenHosts = "an answer between hosts: another attempt follows, or the transfer ends with a code of its own"
	noRoute      = "the next rule leads the player, or the policy does: operators read it"
	toPrograms   = "an answer to a program that uses the API"
	inTheLog     = "what the log or a host finds wrong: operators read it"
)

// codesOfTheProgram reads all codes from the source.
func codesOfTheProgram(t *testing.T) []events.Code {
	t.Helper()
	var out []events.Code
	for _, name := range []string{"codes.go", "asks.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "events", name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Code" {
				code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, events.Code(code))
			}
			return false
		})
	}
	return out
}

// TestEveryCodeHasWords wherever a player can meet it, and none is forgotten.
func TestEveryCodeHasWords(t *testing.T) {
	m, wanted := ShippedMessages(), map[string]bool{}
	all := codesOfTheProgram(t)
	for _, code := range all {
		row, known := told[code]
		if !known || (len(row.families) > 0) == (row.never != "") {
			t.Errorf("%s: say in told where a player meets it, or why never", code)
		}
		for _, family := range row.families {
			key := family + "." + string(code)
			wanted[key] = true
			if m[key] == "" {
				t.Errorf("%s has no text", key)
			}
		}
	}
	if len(all) != len(told) {
		t.Errorf("%d codes in the source, %d in told", len(all), len(told))
	}
	for key := range m {
		family, _, _ := strings.Cut(key, ".")
		if code := strings.ContainsAny(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"); code && !wanted[key] {
			t.Errorf("%s has a text, and nobody reads it: say in told who does", key)
		}
		if Placeholders(key) == nil {
			t.Errorf("%s: say in placeholders what comes with the family %s", key, family)
		}
	}
}

// TestUnknownCodesAreNamed: what nobody expects is told with its code.
func TestUnknownCodesAreNamed(t *testing.T) {
	for _, family := range []string{"refused", "failed", "token"} {
		if got := ShippedMessages().Text(family+".SOMETHING_NEW", nil); !strings.Contains(got, "SOMETHING_NEW") || strings.Contains(got, "{") {
			t.Errorf("%s.SOMETHING_NEW is told as %q, want a text that names the code", family, got)
		}
	}
}

// TestMessagesHaveNoHoles: a text names only what comes with it.
func TestMessagesHaveNoHoles(t *testing.T) {
	m := ShippedMessages()
	for key := range m {
		if got := m.Text(key, nil); strings.ContainsAny(got, "{}") {
			t.Errorf("%s is told as %q", key, got)
		}
	}
}

const messagesPage = "../docs/messages.md"

// TestMessagesPage keeps the table of docs/messages.md equal to what the program has.
func TestMessagesPage(t *testing.T) {
	const begin, end = "<!-- messages: begin -->\n", "<!-- messages: end -->\n"
	page, err := os.ReadFile(messagesPage)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(page), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", messagesPage)
	}
	want := head + begin + messagesTable() + end + tail
	if *update {
		if err := os.WriteFile(messagesPage, []byte(want), 0o644); err != nil { //nolint:gosec // a page for everybody
			t.Fatal(err)
		}
		return
	}
	if string(page) != want {
		t.Errorf("%s differs from the messages; write it with: go test ./actors -run MessagesPage -update", messagesPage)
	}
}

func messagesTable() string {
	var b strings.Builder
	b.WriteString("| key | placeholders | text |\n|---|---|---|\n")
	m := ShippedMessages()
	for _, key := range slices.Sorted(maps.Keys(m)) {
		var names []string
		for _, p := range Placeholders(key) {
			names = append(names, "`{"+p+"}`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", key, strings.Join(names, ", "), m[key])
	}
	return b.String()
}

func TestMessagesText(t *testing.T) {
	m := Messages{"failed": "ended ({code})", "failed.A": "to {server}: {detail} {detail}", "plain": "hello"}
	args := []events.Arg{{Name: "server", Value: "b"}, {Name: "detail", Value: "why"}}
	for key, want := range map[string]string{
		"failed.A": "to b: why why", "failed.B": "ended (B)", "plain": "hello", "nothing.X": "nothing.X", "nothing": "nothing",
	} {
		if got := m.Text(key, args); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	with := m.With(Messages{"plain": "bonjour", "new": "x"})
	if with["plain"] != "bonjour" || with["new"] != "x" || with["failed"] != m["failed"] || m["plain"] != "hello" {
		t.Errorf("replaced texts: %v, the old ones: %v", with, m)
	}
}

// TestMessagesBadFile: a file that cannot be used is refused with what is wanted.
func TestMessagesBadFile(t *testing.T) {
	for name, text := range map[string]string{
		"a list": "- a\n- b\n", "nested": "failed:\n  KILL_SWITCH: x\n", "a key twice": "a: x\na: y\n", "not YAML": "a: [", "a tab": "\ta: x",
	} {
		if m, err := ParseMessages([]byte(text)); err == nil {
			t.Errorf("%s was read as %v", name, m)
		} else if !strings.Contains(err.Error(), "key: text") {
			t.Errorf("%s: the error does not say what is wanted: %v", name, err)
		}
	}
	for name, text := range map[string]string{"empty": "", "comments": "# nothing\n"} {
		if m, err := ParseMessages([]byte(text)); err != nil || len(m) != 0 {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
}
