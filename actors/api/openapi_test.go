package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/landfall/landfall/actors/api"
)

var update = flag.Bool("update", false, "write docs/openapi.json anew")

const openapiFile = "../../docs/openapi.json"

// The document that is served is the one that is committed: what programs rely on changes in sight.
func TestOpenAPIIsWhatIsCommitted(t *testing.T) {
	s := newService(t)
	raw, err := json.Marshal(s.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := json.Indent(&got, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	got.WriteByte('\n')
	if *update {
		if err := os.WriteFile(openapiFile, got.Bytes(), 0o644); err != nil { //nolint:gosec // a page is public
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(openapiFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got.Bytes()) {
		t.Errorf("%s differs: go test ./actors/api -run OpenAPI -update writes it, then look at the diff", openapiFile)
	}
}

// Anybody can read the document, in both forms, without a token.
func TestOpenAPIIsServed(t *testing.T) {
	n := open(t)
	for _, path := range []string{"/openapi.json", "/openapi.yaml"} {
		r := n.call("GET", path, "", "")
		if r.status != 200 || !strings.Contains(string(r.body), "3.1.0") || !strings.Contains(string(r.body), "/v1/transfers") {
			t.Errorf("%s: %d %.100s", path, r.status, r.body)
		}
	}
}

// Each operation says what it takes and which refusals it has, and can be called by name too.
func TestEveryOperationIsDescribed(t *testing.T) {
	s := newService(t)
	names := map[string]bool{}
	for _, op := range s.Operations() {
		if names[op.Name] || op.Summary == "" || op.Scope == "" {
			t.Errorf("%+v", op)
		}
		names[op.Name] = true
	}
	for path, item := range s.OpenAPI().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Delete} {
			if op == nil {
				continue
			}
			if !strings.Contains(op.Description, "Scope: `") {
				t.Errorf("%s: %s", path, op.Description)
			}
			if name := strings.Replace(op.OperationID, "-", ".", 1); !names[name] && !strings.HasSuffix(name, ".follow") {
				t.Errorf("%s cannot be called by name", name)
			}
		}
	}
}

// An operation that is called by name is held against the same bounds, scopes and tokens.
func TestAnOperationIsCalledByName(t *testing.T) {
	n := open(t)
	n.join("Ada")
	token := "Bearer " + n.token("read")
	ops := map[string]api.Operation{}
	for _, op := range n.service.Operations() {
		ops[op.Name] = op
	}
	raw, p := ops["players.get"].Call(t.Context(), token, []byte(`{"player":"Ada"}`))
	if p != nil || !strings.Contains(string(raw), `"online":true`) {
		t.Errorf("%s %v", raw, p)
	}
	if raw, p := ops["fleet.get"].Call(t.Context(), token, nil); p != nil || !strings.Contains(string(raw), "backend-1") {
		t.Errorf("%s %v", raw, p)
	}
	for name, c := range map[string]struct {
		op, token, body string
		code            string
	}{
		"another scope": {"control.kill", token, `{"on":true}`, "SCOPE_MISSING"},
		"no token":      {"fleet.get", "", ``, "AUTH_FAILED"},
		"unknown field": {"players.get", token, `{"player":"Ada","x":1}`, "BAD_REQUEST"},
		"no player":     {"players.get", token, ``, "BAD_REQUEST"},
		"not JSON":      {"players.get", token, `{`, "BAD_REQUEST"},
		"out of bounds": {"line.get", token, `{"limit":-1}`, "BAD_REQUEST"},
		"nobody":        {"players.get", token, `{"player":"Eve"}`, "UNKNOWN"},
	} {
		if _, p := ops[c.op].Call(t.Context(), c.token, []byte(c.body)); p == nil || p.Code != c.code {
			t.Errorf("%s: %v", name, p)
		}
	}
}
