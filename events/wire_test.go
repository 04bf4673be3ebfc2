package events

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const (
	wirePage = "../docs/WIRE.md"
	wireDir  = "../testdata/wire"
)

// vector is one message with everything that leads to its signature.
type vector struct {
	Note      string          `json:"note"`
	Secret    string          `json:"secretBase64,omitempty"`
	Seed      string          `json:"seedHex,omitempty"`   // of a host's own key (RFC 8032: the private key)
	Public    string          `json:"publicHex,omitempty"` // its public half
	KeyID     string          `json:"keyId"`
	Subject   string          `json:"subject"`
	Header    Header          `json:"headers"`
	Value     json.RawMessage `json:"value"`        // the body as JSON
	Body      string          `json:"bodyHex"`      // the body as MessagePack
	Canonical string          `json:"canonicalHex"` // what is signed
}

func vectors() map[string]vector {
	keys := corpusKeyring()
	s := samples()[4] // a claim
	m := must(Seal(keys, s.envelope(), s.fact))
	call, subject, ask := sampleCall()
	w := must(SealCall(keys, call, corpusTime(), subject, ask))
	sealedBy := func(seed string, s sample) Message {
		return must(Seal(NewKeyring().As(ed25519.NewKeyFromSeed([]byte(seed))), s.envelope(), s.fact))
	}
	own := sealedBy(wireHostSeed, s)
	host := sample{"wire", Source{Kind: SourceOperator, ID: RootID, Incarnation: s.source.Incarnation}, "identity.edge-1", 0, "", &IdentitySet{
		Host: "edge-1", Role: IdentityProxy, Keys: []HostKey{{Key: hex.EncodeToString(publicOf(wireHostSeed)), Spans: []Span{{Bucket: Transfers, From: 90}}}},
		Alone: []Span{{Bucket: Transfers, From: 90}}, Who: "ada", Why: "first key",
	}}
	named := sealedBy(wireOperatorSeed, host)
	return map[string]vector{
		"hostfact": vectorOf("a fact signed with the writer's own key", own.Bucket.Subject(own.Key), own.Header, own.Body, s.fact).by(wireHostSeed),
		"identity": vectorOf("the fact that says whose that key is, signed with the operator's", named.Bucket.Subject(named.Key), named.Header, named.Body, host.fact).by(wireOperatorSeed),
		"fact":     vectorOf("a fact as it is stored", m.Bucket.Subject(m.Key), m.Header, m.Body, s.fact),
		"call":     vectorOf("a request as it travels", subject, w.Header, w.Body, ask),
	}
}

func vectorOf(note, subject string, h Header, body []byte, value any) vector {
	return vector{
		Note: note, Secret: base64.StdEncoding.EncodeToString([]byte(corpusSecret)), KeyID: must(NewKey([]byte(corpusSecret))).ID,
		Subject: subject, Header: h, Value: must(json.Marshal(value)), Body: hex.EncodeToString(body),
		Canonical: hex.EncodeToString(Canonical(subject, h, body)),
	}
}

// The seeds of the vectors' keys are public on purpose.
const (
	wireHostSeed     = "landfall test hostkey, never use"
	wireOperatorSeed = "landfall test operator, not used"
)

func publicOf(seed string) ed25519.PublicKey {
	return ed25519.NewKeyFromSeed([]byte(seed)).Public().(ed25519.PublicKey)
}

// by makes it a vector of a key of its own.
func (v vector) by(seed string) vector {
	public := publicOf(seed)
	v.Secret, v.Seed, v.Public, v.KeyID = "", hex.EncodeToString([]byte(seed)), hex.EncodeToString(public), HostKeyID(public)
	return v
}

// judge verifies a vector as the page says.
func (v vector) judge(t *testing.T) *Refusal {
	t.Helper()
	body := must(hex.DecodeString(v.Body))
	if v.Seed == "" {
		return NewKeyring(must(NewKey(must(base64.StdEncoding.DecodeString(v.Secret))))).Verify(v.Subject, v.Header, body)
	}
	_, sig, _ := strings.Cut(v.Header[HeaderSig], ";kid="+v.KeyID+";")
	if !ed25519.Verify(must(hex.DecodeString(v.Public)), must(hex.DecodeString(v.Canonical)), must(hex.DecodeString(sig))) {
		t.Errorf("%s: its signature is not that of its canonical form", v.Note)
	}
	keys := NewKeyring()
	keys.Trust(publicOf(wireOperatorSeed))
	named := vectors()["identity"]
	if refusal := keys.Learn(Record{Bucket: Control, Key: "identity.edge-1", Seq: 1, Header: named.Header, Body: must(hex.DecodeString(named.Body))}); refusal != nil {
		t.Error(refusal)
	}
	bucket, key, err := ParseSubject(v.Subject)
	if err != nil {
		t.Error(err)
	}
	return keys.VerifyRecord(Record{Bucket: bucket, Key: key, Seq: 103, Header: v.Header, Body: body})
}

// The vectors that the page shows are what this build writes, verifies and reads.
func TestWireVectors(t *testing.T) {
	page := readPage(t)
	for name, v := range vectors() {
		golden(t, filepath.Join(wireDir, name+".json"), string(must(json.MarshalIndent(v, "", "  ")))+"\n")
		if got := hex.EncodeToString(byThePage(t, page, v)); got != v.Canonical {
			t.Errorf("%s: by the page the canonical form is\n%s\nand is\n%s", name, got, v.Canonical)
		}
		for what, text := range map[string]string{"body": v.Body, "signature": v.Header[HeaderSig], "subject": v.Subject, "key id": v.KeyID, "public half": v.Public} {
			if !strings.Contains(page, text) {
				t.Errorf("%s does not show the %s of %s: %s", wirePage, what, name, text)
			}
		}
		if refusal := v.judge(t); refusal != nil {
			t.Errorf("%s: %v", name, refusal)
		}
	}
	var ask MoveAsk
	v := vectors()["call"]
	if err := unmarshalJSON(v.Value, &ask); err != nil || hex.EncodeToString(must(Marshal(ask))) != v.Body {
		t.Errorf("the value of the call is not its body: %v", err)
	}
}

// byThePage builds the canonical form as the page says, from the list of headers there.
func byThePage(t *testing.T, page string, v vector) []byte {
	t.Helper()
	_, list, ok := strings.Cut(page, "<!-- signed headers, in order -->\n")
	list, _, ok2 := strings.Cut(list, "\n\n")
	if !ok || !ok2 {
		t.Fatalf("%s has no list of signed headers", wirePage)
	}
	fields := []string{v.Subject}
	for line := range strings.Lines(list) {
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line[strings.Index(line, "`"):]), "`"), "`")
		fields = append(fields, v.Header[name])
	}
	fields = append(fields, string(must(hex.DecodeString(v.Body))))
	out := []byte("landfall-sig-v1")
	for _, f := range fields {
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(f))), f...) //nolint:gosec // small
	}
	return out
}

// The tables of the page are drawn from the structs and their comments; -update draws them anew.
func TestWirePage(t *testing.T) {
	page := readPage(t)
	docs := readDocs(t)
	blocks := map[string]string{"facts": factTables(docs), "bodies": bodyTables(docs), "parts": partTables(docs)}
	for _, name := range []string{"facts", "bodies", "parts"} {
		begin, end := "<!-- generated: "+name+" -->\n", "<!-- end: "+name+" -->"
		head, rest, ok := strings.Cut(page, begin)
		old, tail, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s has no block %q", wirePage, name)
		}
		if old == blocks[name] {
			continue
		}
		if !*update {
			t.Errorf("%s: block %q is not what the structs say: run go test ./events -run Wire -update", wirePage, name)
		}
		page = head + begin + blocks[name] + end + tail
	}
	if *update {
		if err := os.WriteFile(wirePage, []byte(page), 0o644); err != nil { //nolint:gosec // a page is public
			t.Fatal(err)
		}
	}
}

// Everything that stands in a subject or header is on the page.
func TestWirePageIsComplete(t *testing.T) {
	page := readPage(t)
	for _, b := range Buckets {
		if !strings.Contains(page, "`"+string(b)+"`") {
			t.Errorf("%s does not name bucket %s", wirePage, b)
		}
	}
	for _, k := range Catalog {
		if !strings.Contains(page, "`"+k.Type+"`") {
			t.Errorf("%s does not name %s", wirePage, k.Type)
		}
	}
	for _, h := range append(slices.Clone(signedHeaders), HeaderSig) {
		if !strings.Contains(page, "`"+h+"`") {
			t.Errorf("%s does not name header %s", wirePage, h)
		}
	}
	for _, v := range slices.Concat(BackendVerbs, AskVerbs, DispatcherVerbs, NewsVerbs) {
		if !strings.Contains(page, "`"+string(v)+"`") {
			t.Errorf("%s does not name verb %s", wirePage, v)
		}
	}
	for _, c := range []Code{
		OK, Promised, Accepted, Active, Place, NoPlace, WaitABit, NotKnown, NoCoordinate, Full, Paced, WrongIncarnation, Unsafe, NotReady,
		Sent, NotHere, TooOld, Refused, NotSent, PromiseGone, PlacementUnconfirmed, AuthFailed, BadRequest,
	} {
		if !strings.Contains(page, string(c)) {
			t.Errorf("%s does not name code %s", wirePage, c)
		}
	}
}

func readPage(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(wirePage)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// docs are the comments of structs and of their fields, by "Struct" and "Struct.Field".
type docs map[string]string

func readDocs(t *testing.T) docs {
	t.Helper()
	out := docs{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if d, ok := n.(*ast.GenDecl); ok && len(d.Specs) == 1 && d.Doc != nil {
				if spec, ok := d.Specs[0].(*ast.TypeSpec); ok && spec.Doc == nil {
					spec.Doc = d.Doc
				}
			}
			if spec, ok := n.(*ast.TypeSpec); ok {
				out.read(spec)
			}
			return true
		})
	}
	return out
}

func (d docs) read(spec *ast.TypeSpec) {
	typ, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	d[spec.Name.Name] = oneLine(spec.Doc.Text())
	for _, f := range typ.Fields.List {
		for _, name := range f.Names {
			d[spec.Name.Name+"."+name.Name] = oneLine(f.Doc.Text() + " " + f.Comment.Text())
		}
	}
}

func oneLine(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "\\|")
}

func factTables(d docs) string {
	var out strings.Builder
	for _, k := range Catalog {
		typ := reflect.TypeOf(k.New()).Elem()
		fmt.Fprintf(&out, "\n### `%s`\n\nBucket `%s`. %s\n\n", k.Type, k.Bucket, d[typ.Name()])
		table(&out, d, typ)
	}
	return out.String() + "\n"
}

func bodyTables(d docs) string {
	var out strings.Builder
	for _, b := range bodies() {
		typ := reflect.TypeOf(b)
		fmt.Fprintf(&out, "\n### %s\n\n%s\n\n", typ.Name(), d[typ.Name()])
		table(&out, d, typ)
	}
	return out.String() + "\n"
}

// partTables are the structs inside the others, each once, in the order they are met.
func partTables(d docs) string {
	var out strings.Builder
	seen := map[reflect.Type]bool{tokenType: true}
	var visit func(typ reflect.Type, draw bool)
	visit = func(typ reflect.Type, draw bool) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] {
			return
		}
		seen[typ] = true
		if draw {
			fmt.Fprintf(&out, "\n### %s\n\n%s\n\n", typ.Name(), d[typ.Name()])
			table(&out, d, typ)
		}
		for f := range typ.Fields() {
			visit(f.Type, true)
		}
	}
	for _, k := range Catalog {
		visit(reflect.TypeOf(k.New()), false)
	}
	for _, b := range bodies() {
		visit(reflect.TypeOf(b), false)
	}
	return out.String() + "\n"
}

func table(out *strings.Builder, d docs, typ reflect.Type) {
	out.WriteString("| field | JSON | type | |\n|---|---|---|---|\n")
	for f := range typ.Fields() {
		wire, option, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
		text, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		note := d[typ.Name()+"."+f.Name]
		if option != "" {
			note = strings.TrimSpace("*optional* " + note)
		}
		fmt.Fprintf(out, "| `%s` | `%s` | %s | %s |\n", wire, text, wireName(f.Type), note)
	}
}

// wireName is a type as another language's author would call it.
func wireName(t reflect.Type) string {
	switch t.Kind() { //nolint:exhaustive // the kinds that wire structs are made of
	case reflect.Pointer:
		return wireName(t.Elem())
	case reflect.Slice:
		return "list of " + wireName(t.Elem())
	case reflect.Array:
		return "id"
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int64:
		return "int"
	case reflect.Uint64:
		return "uint"
	case reflect.Float64:
		return "float"
	}
	switch t {
	case tokenType:
		return "token"
	case reflect.TypeFor[HostID]():
		return "host id"
	case reflect.TypeFor[Code]():
		return "code"
	}
	if t.Kind() == reflect.String {
		return "text"
	}
	return "[" + t.Name() + "](#" + strings.ToLower(t.Name()) + ")"
}
