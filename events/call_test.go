package events

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func sampleCall() (Call, string, MoveAsk) {
	ask := MoveAsk{
		Player: must(ParseID[PlayerID](samplePlayer)), Name: "Notch", Token: Token{Transfer: must(ParseID[TransferID](sampleTransfer)), Attempt: 2},
		Claim: 103, How: HowTransfer, Address: "r-x.play.example.org:25565", At: Position{World: "minecraft:overworld", X: 1.5, Y: 64},
	}
	return Call{ID: fixed[RequestID]("call"), Source: host(SourceEdge, "edge-1"), Deadline: 5 * time.Second}, ToBackend("survival-1", VerbMove), ask
}

func TestCallRoundTrip(t *testing.T) {
	keys := corpusKeyring()
	call, subject, ask := sampleCall()
	w := must(SealCall(keys, call, corpusTime(), subject, ask))
	var got MoveAsk
	opened, refusal := OpenCall(keys, subject, w, &got)
	if refusal != nil || opened != call || got != ask {
		t.Fatalf("got %+v, %+v, %v", opened, got, refusalText(refusal))
	}
	answer := must(SealCall(keys, Call{ID: fixed[RequestID]("answer"), Source: host(SourceBackend, "survival-1"), Cause: opened.ID}, corpusTime(), subject, Answer{Code: Sent}))
	var a Answer
	back, refusal := OpenCall(keys, subject, answer, &a)
	if refusal != nil || back.Cause != call.ID || a.Code != Sent || back.Deadline != 0 {
		t.Fatalf("answer %+v, %+v, %v", back, a, refusalText(refusal))
	}
}

// Every body survives both forms, and both forms mean the same.
func TestBodiesInBothForms(t *testing.T) {
	for _, b := range bodies() {
		full := reflect.New(reflect.TypeOf(b))
		fill(full.Elem(), 1)
		for _, v := range []any{b, full.Elem().Interface()} {
			pack, text := newLike(b), newLike(b)
			if err := UnmarshalExact(must(Marshal(v)), pack); err != nil || !reflect.DeepEqual(reflect.ValueOf(pack).Elem().Interface(), v) {
				t.Errorf("%T in MessagePack: %+v, %v", b, pack, err)
			}
			if err := unmarshalJSON(must(json.Marshal(v)), text); err != nil || !reflect.DeepEqual(pack, text) {
				t.Errorf("%T in JSON: %+v, %v", b, text, err)
			}
		}
	}
}

// fill sets every field to something that is not zero.
func fill(v reflect.Value, n int) {
	switch v.Kind() { //nolint:exhaustive // the kinds that wire structs are made of
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n+i)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n+1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(n + i))
		}
	case reflect.String:
		v.SetString(strings.Repeat("ä", n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Uint64:
		v.SetUint(uint64(n))
	case reflect.Float64:
		v.SetFloat(float64(n) + 0.5)
	}
}

func TestJSONCall(t *testing.T) {
	keys := corpusKeyring()
	backend, subject := host(SourceBackend, "survival-1"), AskOf("survival-1", VerbArrived)
	good := `{"player":"` + samplePlayer + `","name":"Notch","join":"` + sampleNext + `","incarnation":"` + sampleNext + `","held":["` + sampleTransfer + `-2"]}`
	cases := []struct{ name, body, want string }{
		{"good", good, ""},
		{"unknown field", strings.Replace(good, "{", `{"later":{"a":[1]},`, 1), ""},
		{"no list", strings.Replace(good, `["`+sampleTransfer+`-2"]`, "null", 1), ""},
		{"field missing", strings.Replace(good, `"name":"Notch",`, "", 1), `"name" is missing`},
		{"field twice", strings.Replace(good, "{", `{"name":"Herobrine",`, 1), `"name": stands twice`},
		{"unknown field twice", strings.Replace(good, "{", `{"x":1,"x":2,`, 1), `"x": stands twice`},
		{"other case", strings.Replace(good, "{", `{"Name":"Herobrine",`, 1), `want "name"`},
		{"null", strings.Replace(good, `"Notch"`, "null", 1), "null is no value"},
		{"number for text", strings.Replace(good, `"Notch"`, "7", 1), "cannot unmarshal number"},
		{"bad id", strings.Replace(good, samplePlayer, "Notch", 1), "parse id"},
		{"bad token", strings.Replace(good, "-2\"", "-0\"", 1), "parse token"},
		{"a list", "[]", "want an object"},
		{"null for all", "null", "want an object"},
		{"behind", good + "{}", "behind the body"},
		{"empty", "", "EOF"},
		{"cut", good[:40], "EOF"},
		{"too large", strings.Replace(good, "Notch", strings.Repeat("n", MaxBody), 1), "at most"},
	}
	for _, c := range cases {
		w := Wire{Header: callHeader(backend, subject), Body: []byte(c.body)}
		w.Header[HeaderContent] = contentJSON
		w.Header[HeaderSig] = keys.Sign(subject, w.Header, w.Body)
		var ask ArrivedAsk
		_, refusal := OpenCall(keys, subject, w, &ask)
		if c.want == "" {
			if refusal != nil || ask.Name != "Notch" || ask.Player.String() != samplePlayer {
				t.Errorf("%s: %+v, %v", c.name, ask, refusalText(refusal))
			}
			continue
		}
		requireRefusal(t, c.name, refusal, BadRequest)
		if refusal != nil && !strings.Contains(refusal.Detail, c.want) {
			t.Errorf("%s: %v, want %q in it", c.name, refusal, c.want)
		}
	}
	// numbers and optional fields of an answer to a move
	var ask MoveAsk
	move := string(must(json.Marshal(MoveAsk{})))
	if err := unmarshalJSON([]byte(strings.Replace(move, "{", `{"query":null,`, 1)), &ask); err != nil || ask.Query {
		t.Errorf("null for an optional field: %v, %v", ask.Query, err)
	}
	for _, bad := range []string{"1.5", "-1", "1e300", `"1"`} {
		if err := unmarshalJSON([]byte(strings.Replace(move, `"claim":0`, `"claim":`+bad, 1)), &ask); err == nil {
			t.Errorf("claim %s is taken", bad)
		}
	}
}

func callHeader(s Source, subject string) Header {
	return Header{
		HeaderSpec: "1.0", HeaderID: fixed[RequestID]("call").String(), HeaderType: callType, HeaderSource: s.String(),
		HeaderTime: corpusTime().Format(time.RFC3339Nano), HeaderKey: subject, HeaderContent: contentMsgpack, HeaderSchema: "1",
	}
}

func TestOpenCallRefuses(t *testing.T) {
	keys := corpusKeyring()
	call, subject, ask := sampleCall()
	cases := []struct {
		name    string
		change  func(w *Wire)
		subject string
		resign  bool
		code    Code
	}{
		{"over another subject", func(*Wire) {}, ToBackend("survival-2", VerbMove), false, AuthFailed},
		{"not signed", func(w *Wire) { delete(w.Header, HeaderSig) }, subject, false, AuthFailed},
		{"another body", func(w *Wire) { w.Body[3] ^= 1 }, subject, false, AuthFailed},
		{"another source", func(w *Wire) { w.Header[HeaderSource] = host(SourceEdge, "edge-2").String() }, subject, false, AuthFailed},
		{"another deadline", func(w *Wire) { w.Header[HeaderDeadline] = "1" }, subject, false, AuthFailed},
		{"another content type", func(w *Wire) { w.Header[HeaderContent] = contentJSON }, subject, false, AuthFailed},
		{"no id", func(w *Wire) { delete(w.Header, HeaderID) }, subject, true, BadRequest},
		{"no source", func(w *Wire) { w.Header[HeaderSource] = "edge-1" }, subject, true, BadRequest},
		{"bad cause", func(w *Wire) { w.Header[HeaderCausation] = "x" }, subject, true, BadRequest},
		{"a fact", func(w *Wire) { w.Header[HeaderType] = "landfall.transfer.claimed.v1" }, subject, true, BadRequest},
		{"no content type", func(w *Wire) { delete(w.Header, HeaderContent) }, subject, true, BadRequest},
		{"content of no kind", func(w *Wire) { w.Header[HeaderContent] = "text/xml" }, subject, true, BadRequest},
		{"body of another call", func(w *Wire) { w.Body = must(Marshal(StateAsk{})) }, subject, true, BadRequest},
		{"deadline negative", func(w *Wire) { w.Header[HeaderDeadline] = "-1" }, subject, true, BadRequest},
		{"deadline beyond a minute", func(w *Wire) { w.Header[HeaderDeadline] = "60001" }, subject, true, BadRequest},
		{"deadline no number", func(w *Wire) { w.Header[HeaderDeadline] = "5s" }, subject, true, BadRequest},
	}
	for _, c := range cases {
		w := must(SealCall(keys, call, corpusTime(), subject, ask))
		w.Header = maps.Clone(w.Header)
		c.change(&w)
		if c.resign {
			w.Header[HeaderSig] = keys.Sign(subject, w.Header, w.Body)
		}
		_, refusal := OpenCall(keys, c.subject, w, new(MoveAsk))
		requireRefusal(t, c.name, refusal, c.code)
	}
}

// A deadline is written in whole milliseconds, never as none, never beyond what is taken.
func TestCallDeadline(t *testing.T) {
	keys := corpusKeyring()
	call, subject, ask := sampleCall()
	for in, want := range map[time.Duration]time.Duration{
		0: 0, -time.Second: 0, time.Nanosecond: time.Millisecond, 1500*time.Microsecond + 1: time.Millisecond,
		5 * time.Second: 5 * time.Second, time.Minute: time.Minute, time.Hour: time.Minute,
	} {
		call.Deadline = in
		got, refusal := OpenCall(keys, subject, must(SealCall(keys, call, corpusTime(), subject, ask)), new(MoveAsk))
		if refusal != nil || got.Deadline != want {
			t.Errorf("a deadline of %v came as %v, %v", in, got.Deadline, refusalText(refusal))
		}
	}
}

// An answer names its request: the caller sees that it belongs to another one.
func TestAnswerToAnotherRequest(t *testing.T) {
	keys := corpusKeyring()
	call, subject, _ := sampleCall()
	other := fixed[RequestID]("another call")
	w := must(SealCall(keys, Call{ID: fixed[RequestID]("answer"), Source: call.Source, Cause: other}, corpusTime(), subject, Answer{Code: Sent}))
	got, refusal := OpenCall(keys, subject, w, new(Answer))
	if refusal != nil || got.Cause == call.ID || got.Cause != other {
		t.Fatalf("cause %s, %v", got.Cause, refusalText(refusal))
	}
	w.Header[HeaderCausation] = call.ID.String()
	_, refusal = OpenCall(keys, subject, w, new(Answer))
	requireRefusal(t, "an answer turned to another request", refusal, AuthFailed)
}

func TestSubjects(t *testing.T) {
	for got, want := range map[string]string{
		ToBackend("b-1", VerbReserve):                       "landfall.backend.b-1.reserve",
		AskOf("b-1", VerbArrived):                           "landfall.ask.backend.b-1.arrived",
		NewsOf("*", VerbJoined):                             "landfall.news.backend.*.joined",
		Transfers.Subject("a.b"):                            "$KV.transfers.a.b",
		Transfers.Guard("a.b"):                              "$KV.transfers.a.>",
		Sessions.Guard("a"):                                 "$KV.sessions.a",
		Fleet.Guard(BackendKey("b")):                        "$KV.fleet.backend.b",
		Fleet.Subject(ProxyKey("p")):                        "$KV.fleet.proxy.p",
		Control.Subject(KillKey) + Control.Guard("drain.x"): "$KV.control.kill$KV.control.drain.x",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	verbs := map[Verb]bool{}
	for _, v := range slices.Concat(BackendVerbs, AskVerbs, DispatcherVerbs, NewsVerbs) {
		if verbs[v] {
			t.Errorf("verb %s stands in two lists", v)
		}
		verbs[v] = true
	}
}
