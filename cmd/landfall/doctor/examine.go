package doctor

import (
	"fmt"
	"slices"
)

// Finding is one thing that is wrong, or worth knowing.
type Finding struct {
	Code     Code
	Severity Severity
	Where    string // a host, a stream, a file, a server
	Text     string
	Remedy   string
}

// look is one check.
type look func(*Facts) []Finding

// looks are all checks, in the order of the codes.
var looks = []look{
	config, secret, settings, disk, retention, files, rcon,
	reach, guard, versions, syncs, identity, drift, copies, logins, readers,
	projectors, watchers, beats, clocks, duplicates, configs, wires,
}

// Examine finds what is wrong, the worst first; the same facts always give the same findings.
func Examine(f *Facts) []Finding {
	var out []Finding
	for _, l := range looks {
		out = append(out, l(f)...)
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return b.Severity.rank() - a.Severity.rank() })
	return out
}

// Worst is the worst severity among findings; "" when there are none.
func Worst(all []Finding) Severity {
	worst := Severity("")
	for i, f := range all {
		if i == 0 || f.Severity.rank() > worst.rank() {
			worst = f.Severity
		}
	}
	return worst
}

// found makes a finding of a code.
func found(c Code, where, format string, args ...any) Finding {
	a, known := Ailing(c)
	if !known {
		panic("code " + string(c) + " is not in the table")
	}
	return Finding{Code: c, Severity: a.Severity, Where: where, Text: fmt.Sprintf(format, args...), Remedy: a.Remedy}
}
