package embedded

import "testing"

func TestParseDenial(t *testing.T) {
	const before = `127.0.0.1:37936 - cid:94 - "v1.55.0:go:backend.b1.append" - "$G/user:backend.b1" - `
	for remark, want := range map[string]Denial{
		before + `Publish Violation - Subject "$KV.transfers.p.t"`:                   {"backend.b1", "publish", "$KV.transfers.p.t"},
		before + `Subscription Violation - Subject "_INBOX.>", SID 4`:                {"backend.b1", "subscribe", "_INBOX.>"},
		before + `Publish Violation - Subject "a\"b"`:                                {"backend.b1", "publish", `a\"b`},
		`x - "$G/nkey:UABC" - Publish Violation - Subject "x"`:                       {"UABC", "publish", "x"},
		before + `Slow Consumer Detected`:                                            {},
		`user:backend.b1 - Publish Violation - Subject "x"`:                          {},
		before + `Subscription Violation - Subject "landfall.>", Queue: "q", SID 12`: {"backend.b1", "subscribe", "landfall.>"},
	} {
		if got, ok := parseDenial(remark); got != want || ok != (want != Denial{}) {
			t.Errorf("%s: %+v, %v; want %+v", remark, got, ok, want)
		}
	}
}

// TestDenialsNameTheHost, by whatever it logs in.
func TestDenialsNameTheHost(t *testing.T) {
	l := newLogger(nil)
	l.know([]User{{Role: "backend", ID: "b1", Name: "backend.b1.cc9e340c", Password: "x"}, {Role: "dispatcher", ID: "d1", Key: "UABC"}})
	for login, want := range map[string]string{"backend.b1.cc9e340c": "backend.b1", "UABC": "dispatcher.d1", "stranger": "stranger"} {
		if got := l.nameOf(login); got != want {
			t.Errorf("%s is %s, want %s", login, got, want)
		}
	}
}
