# One-liners over plain go commands; everything works without just.

default:
    @just --list

# the network in one process
demo *args:
    go run ./cmd/landfall demo {{args}}

# all tests
test *args:
    go test ./... {{args}}

# new concurrent tests, many times
race package:
    go test -race -count=20 {{package}}

# the figures, in benchstat's format
bench *args:
    go test -run '^$' -bench . -count 6 {{args}} ./...

# a claim beside Redis and PostgreSQL, which it starts itself (Debian: redis-server, postgresql-15)
bench-peers *args:
    go -C testdata/bench run . {{args}}

# power cuts, tried (root, loop devices, xfsprogs, btrfs-progs)
powercut:
    go test -count=1 -tags powercut -run PowerCut ./streams/embedded -v

# two files of figures side by side
benchstat old new:
    go -C .ci/tools tool benchstat {{absolute_path(old)}} {{absolute_path(new)}}

# golden files anew: look at the diff before you commit it
golden:
    go test ./cmd/landfall/network -update

# one parser, for a while: just fuzz ./events FuzzOpen 10m; all of them, ten seconds each: .ci/run fuzz
fuzz package name time="60s":
    go test -run '^$' -fuzz '^{{name}}$' -fuzztime {{time}} {{package}}

# the linter, built once from its pinned version
lint:
    .ci/run lint

# known holes in what we import (asks vuln.go.dev)
vuln:
    go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

# a release: archives and Debian packages; just package dist linux/amd64 linux/arm64
package dir="dist" *platforms:
    .ci/package/build {{dir}} {{platforms}}

# everything a change must pass
ci:
    .ci/run

# the chaos of 200 players in 10,000 steps, in memory and over a real store; another schedule: just crowd -crowd.seed 8
crowd *args:
    go test -run Crowd -v -timeout 30m ./actors/sim -crowd.steps 10000 {{args}}
