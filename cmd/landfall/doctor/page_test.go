package doctor_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/landfall/landfall/cmd/landfall/doctor"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestPage keeps docs/doctor.md equal to the table of codes. After a change of the table:
//
//	go test ./cmd/landfall/doctor -run Page -update
func TestPage(t *testing.T) {
	want := thePage()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s differs from the table of codes; write it with: go test ./cmd/landfall/doctor -run Page -update", page)
	}
}

func thePage() string {
	var b strings.Builder
	b.WriteString(`# landfall doctor

    landfall doctor --config network.yml --id survival-1

looks at network.yml, the secret, this machine, the store and the hosts that beat, and says what is wrong, the worst first:
a code that stays, how bad it is, where, and what helps. It changes nothing. Run it on each host, with that host's id: RCON,
open files and the disk are looked at where they are. What could not be looked at is named as *not seen*; when the store is
down, everything else still is.

- Exit status: 0 nothing, or notes only; 1 a warning is the worst; 2 an error is.
- ` + "`--json`" + `: one object a line, ` + "`finding` and `unseen`" + `, and ` + "`end`" + ` with the counts last.
- Permissions are tried under the login of each host that network.yml lists, by requests that leave nothing behind: a fact for
  a stream that does not exist, a change of such a stream. The log of the store's server names what it refused.
- Heartbeats are believed only when they are verified, so without the secret hosts are not seen.

| code | severity | what it means | what helps |
|---|---|---|---|
`)
	cell := strings.NewReplacer("|", `\|`)
	for _, a := range doctor.Ailments {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", a.Code, a.Severity, cell.Replace(a.What), cell.Replace(a.Remedy))
	}
	return b.String()
}
