package archive

import (
	"database/sql"
	"time"
)

// Report is a question that operators ask often.
type Report struct {
	Name  string
	Short string
	// Who names what the report is about, such as "NAME|UUID"; empty: it takes nothing.
	Who string
	SQL string
}

// Filter narrows a report. Zero fields do not.
type Filter struct {
	Who          string
	Server       string
	Region       string
	Since, Until time.Time // of the request; until is not included
}

// Args are the parameters that every report's statement has.
func (f Filter) Args() []any {
	until := int64(1) << 62
	if !f.Until.IsZero() {
		until = f.Until.UnixMilli()
	}
	return []any{
		sql.Named("who", f.Who), sql.Named("server", f.Server), sql.Named("region", f.Region),
		sql.Named("since", unixMilli(f.Since)), sql.Named("until", until),
	}
}

const (
	// chosen are the transfers that a filter lets through.
	chosen = `FROM transfers WHERE requested_at >= :since AND requested_at < :until
  AND (:server = '' OR server = :server) AND (:region = '' OR region = :region)`
	// used makes every parameter one of the statement's, also where it means nothing.
	used = ` AND (:who = :who AND :server = :server AND :region = :region AND :since = :since AND :until = :until)`
)

// at shows a time as the other verbs do.
func at(column string) string {
	return "strftime('%Y-%m-%dT%H:%M:%fZ', " + column + " / 1000.0, 'unixepoch')"
}

// Reports are the named questions, in the order of the help.
var Reports = []Report{
	{Name: "failures", Short: "ends that were no arrival, by code", SQL: `
SELECT phase, code, count(*) AS transfers,
  round(100.0 * count(*) / (SELECT count(*) ` + chosen + `), 2) AS percent,
  count(DISTINCT player) AS players, ` + at("max(ended_at)") + ` AS last, id AS example
` + chosen + ` AND phase IN ('FAILED', 'CANCELLED', 'UNKNOWN')` + used + `
GROUP BY phase, code ORDER BY transfers DESC, phase, code`},

	{Name: "servers", Short: "transfers by the server and region they led to, with half and 95 % of the durations", SQL: `
WITH picked AS (SELECT server, region, phase, duration_ms ` + chosen + used + `),
done AS (SELECT server, region, duration_ms, row_number() OVER w AS nth, count(*) OVER (PARTITION BY server, region) AS of
  FROM picked WHERE phase = 'COMPLETED' WINDOW w AS (PARTITION BY server, region ORDER BY duration_ms)),
pace AS (SELECT server, region, max(CASE WHEN nth = (of + 1) / 2 THEN duration_ms END) AS p50, max(CASE WHEN nth = (of * 95 + 99) / 100 THEN duration_ms END) AS p95
  FROM done GROUP BY server, region)
SELECT picked.server, picked.region, count(*) AS transfers, sum(phase = 'COMPLETED') AS completed, sum(phase IN ('FAILED', 'UNKNOWN')) AS failed,
  sum(phase IN ('CANCELLED', 'SUPERSEDED')) AS given_up, sum(phase IN ('REQUESTED', 'WAITING', 'PENDING', 'CLAIMED', 'CONSUMED')) AS under_way,
  p50 AS p50_ms, p95 AS p95_ms
FROM picked LEFT JOIN pace ON pace.server = picked.server AND pace.region = picked.region
GROUP BY picked.server, picked.region ORDER BY transfers DESC, picked.server, picked.region`},

	{Name: "slowest", Short: "arrivals that took longest, and where the time went", SQL: `
SELECT t.id, t.name, t.server, t.region, t.duration_ms AS total_ms, a.reserved_at - t.requested_at AS to_reserve_ms,
  a.claimed_at - a.reserved_at AS to_claim_ms, a.arrived_at - a.claimed_at AS to_arrive_ms, t.ended_at - a.arrived_at AS to_place_ms,
  t.attempts, ` + at("t.requested_at") + ` AS requested
FROM (SELECT * ` + chosen + used + ` AND phase = 'COMPLETED' ORDER BY duration_ms DESC, place LIMIT 100000) t
JOIN attempts a ON a.place = t.place AND a.n = t.attempts ORDER BY t.duration_ms DESC, t.place`},

	{Name: "player", Short: "one player's transfers, newest first", Who: "NAME|UUID", SQL: `
SELECT ` + at("requested_at") + ` AS requested, id, name, started_by, origin, server, region, phase, code, attempts, duration_ms
FROM (SELECT * FROM transfers WHERE player = lower(:who) UNION SELECT * FROM transfers WHERE name = :who COLLATE NOCASE)
WHERE requested_at >= :since AND requested_at < :until AND (:server = '' OR server = :server) AND (:region = '' OR region = :region)` + used + `
ORDER BY place DESC`},

	{Name: "lost", Short: "destinations that decisions lost, by reason", SQL: `
SELECT r.code, count(*) AS decisions, sum(r.count) AS destinations,
  round(100.0 * count(*) / (SELECT count(*) FROM decisions WHERE at >= :since AND at < :until), 2) AS percent, ` + at("max(d.at)") + ` AS last, r.examples AS examples
FROM ruled_out r JOIN decisions d USING (seq)
WHERE d.at >= :since AND d.at < :until AND (:server = '' OR EXISTS (SELECT 1 FROM json_each(r.examples) e WHERE e.value = :server OR e.value LIKE :server || ':%'))` + used + `
GROUP BY r.code ORDER BY decisions DESC, r.code`},

	{Name: "attempts", Short: "how tokens ended, by server", SQL: `
SELECT server, region, outcome, reason, count(*) AS attempts, sum(reopened) AS reopened, ` + at("max(reserved_at)") + ` AS last
FROM attempts WHERE reserved_at >= :since AND reserved_at < :until AND (:server = '' OR server = :server) AND (:region = '' OR region = :region)` + used + `
GROUP BY server, region, outcome, reason ORDER BY attempts DESC, server, region, outcome, reason`},

	{Name: "arrivals", Short: "arrivals by hour, server and region", SQL: `
SELECT strftime('%Y-%m-%dT%H:00Z', arrived_at / 1000, 'unixepoch') AS hour, server, region, count(*) AS arrivals, count(DISTINCT player) AS players,
  CAST(avg(after_ms) AS INTEGER) AS average_ms, max(after_ms) AS slowest_ms
FROM arrivals WHERE arrived_at >= :since AND arrived_at < :until AND (:server = '' OR server = :server) AND (:region = '' OR region = :region)` + used + `
GROUP BY hour, server, region ORDER BY hour DESC, server, region`},

	{Name: "refusals", Short: "what was refused for what it is, by code and source", SQL: `
SELECT bucket, code, source, count(*) AS times, ` + at("max(at)") + ` AS last, seq, detail
FROM refusals WHERE at >= :since AND at < :until` + used + `
GROUP BY bucket, code, source ORDER BY times DESC, bucket, code, source`},
}

// ReportNamed gives a report; ok is false when there is none of that name.
func ReportNamed(name string) (r Report, ok bool) {
	for _, r := range Reports {
		if r.Name == name {
			return r, true
		}
	}
	return Report{}, false
}

// Schema is the SQL that made the tables, with what their columns mean, and the indexes.
func Schema() string { return schema + "\n" + indexes }
