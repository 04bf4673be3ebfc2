package events

// Decision is the record of a choice: enough to explain it without the fleet's history.
// It rides in the fact that follows from it, and stays under 4 KB.
type Decision struct {
	Policy     string      `msgpack:"policy" json:"policy"`                             // name and hash of the rules that chose
	Snapshot   uint64      `msgpack:"snapshot" json:"snapshot"`                         // sequence of the newest heartbeat in the snapshot
	AgeMs      int64       `msgpack:"age" json:"ageMs"`                                 // age of the snapshot when it was used
	Candidates []Candidate `msgpack:"best" json:"candidates"`                           // best first, at most MaxCandidates
	Filtered   []Filtered  `msgpack:"out" json:"filtered"`                              // sorted by code
	Unreported string      `msgpack:"unreported,omitempty" json:"unreported,omitempty"` // inputs of the policy that no candidate reports, left out of all scores; separated by commas
	Collision  string      `msgpack:"collision,omitempty" json:"collision,omitempty"`   // server=world, separated by commas, when the region asked for means different worlds
}

// MaxCandidates is how many candidates a decision records.
const MaxCandidates = 8

// MaxExamples is how many servers a decision names per filter reason.
const MaxExamples = 8

// Candidate is one destination that passed the filters. A lower score is better.
type Candidate struct {
	Server HostID  `msgpack:"server" json:"server"`
	Region string  `msgpack:"region" json:"region"`
	Score  float64 `msgpack:"score" json:"score"`
	Terms  []Term  `msgpack:"terms" json:"terms"`
}

// Term is one input of a candidate's score, and its share in that score: the shares add up.
type Term struct {
	Name    string  `msgpack:"name" json:"name"`
	Raw     float64 `msgpack:"raw" json:"raw"`
	Score   float64 `msgpack:"score" json:"score"`
	Missing bool    `msgpack:"missing,omitempty" json:"missing,omitempty"` // not reported, while others report it: raw is 0 and the share the worst
}

// Filtered counts the destinations that one reason ruled out.
type Filtered struct {
	Code     Code     `msgpack:"code" json:"code"`
	Count    int      `msgpack:"count" json:"count"`
	Examples []string `msgpack:"eg" json:"examples"`
}
