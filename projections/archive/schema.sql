-- Times are Unix milliseconds on the stream's clock: datetime(requested_at / 1000, 'unixepoch').
-- Sequences are those of the bucket transfers, unless the table names a bucket.

-- One journey of a player. place is the sequence of its request.
CREATE TABLE transfers (
  place        INTEGER PRIMARY KEY,
  id           TEXT NOT NULL,
  player       TEXT NOT NULL,
  name         TEXT NOT NULL,
  native_id    TEXT NOT NULL,
  started_by   TEXT NOT NULL, -- command, join, event, api, evacuate
  via          TEXT NOT NULL, -- the event's name, or the host name that was dialled
  wish_region  TEXT NOT NULL,
  wish_world   TEXT NOT NULL,
  wish_server  TEXT NOT NULL,
  origin       TEXT NOT NULL, -- the server where the player stood
  bypass       INTEGER NOT NULL,
  phase        TEXT NOT NULL, -- REQUESTED, WAITING, PENDING, CLAIMED, CONSUMED, COMPLETED, FAILED, CANCELLED, SUPERSEDED, or UNKNOWN: its end was lost
  code         TEXT NOT NULL, -- of an end; OK when completed
  detail       TEXT NOT NULL,
  waitlisted   INTEGER NOT NULL,
  attempts     INTEGER NOT NULL,
  server       TEXT NOT NULL, -- of the last attempt
  region       TEXT NOT NULL,
  facts        INTEGER NOT NULL,
  last_seq     INTEGER NOT NULL,
  requested_at INTEGER NOT NULL,
  ended_at     INTEGER,
  duration_ms  INTEGER        -- from request to end
);

-- One token: a coordinate on one server, promised to one player.
CREATE TABLE attempts (
  place        INTEGER NOT NULL, -- of its transfer
  n            INTEGER NOT NULL,
  server       TEXT NOT NULL,
  region       TEXT NOT NULL,
  world        TEXT NOT NULL,
  x            REAL NOT NULL,
  y            REAL NOT NULL,
  z            REAL NOT NULL,
  ttl_ms       INTEGER NOT NULL,
  reserved_seq INTEGER NOT NULL,
  reserved_at  INTEGER NOT NULL,
  dispatcher   TEXT NOT NULL,
  from_server  TEXT NOT NULL,
  claimed_at   INTEGER,
  reopened     INTEGER NOT NULL, -- how often it was taken back from a claimer
  how          TEXT NOT NULL,
  move         TEXT NOT NULL,    -- sent, unknown
  moved_at     INTEGER,
  arrived_seq  INTEGER,
  arrived_at   INTEGER,
  outcome      TEXT NOT NULL,    -- open, completed, released, expired, failed, cancelled, superseded
  reason       TEXT NOT NULL,
  ended_at     INTEGER,
  PRIMARY KEY (place, n)
) WITHOUT ROWID;

-- One choice of a destination, in the fact at seq. A lower score is better.
CREATE TABLE decisions (
  seq        INTEGER PRIMARY KEY,
  place      INTEGER NOT NULL,
  at         INTEGER NOT NULL,
  kind       TEXT NOT NULL,    -- reserved, waitlisted, failed
  policy     TEXT NOT NULL,
  snapshot   INTEGER NOT NULL, -- sequence of the newest heartbeat it knew
  age_ms     INTEGER NOT NULL, -- of that snapshot
  server     TEXT NOT NULL,    -- who was asked in the end
  region     TEXT NOT NULL,
  score      REAL,             -- of the best candidate
  margin     REAL,             -- to the second
  candidates TEXT NOT NULL,    -- JSON: [[server, region, score], ...], best first
  ruled_out  INTEGER NOT NULL  -- how many destinations the filters took
);

-- Destinations that a decision lost to one reason.
CREATE TABLE ruled_out (
  code     TEXT NOT NULL,
  seq      INTEGER NOT NULL, -- of the decision
  count    INTEGER NOT NULL,
  examples TEXT NOT NULL,    -- JSON: servers
  PRIMARY KEY (code, seq)
) WITHOUT ROWID;

-- What was refused for what it is: by the folds (bucket transfers), or by hosts (bucket audit).
CREATE TABLE refusals (
  bucket  TEXT NOT NULL,
  seq     INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  code    TEXT NOT NULL,
  source  TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail  TEXT NOT NULL,
  PRIMARY KEY (bucket, seq)
) WITHOUT ROWID;

-- What was left out because an operator said so.
CREATE TABLE quarantined (
  bucket TEXT NOT NULL,
  seq    INTEGER NOT NULL,
  code   TEXT NOT NULL,
  detail TEXT NOT NULL,
  PRIMARY KEY (bucket, seq)
) WITHOUT ROWID;

-- Sequences that the log had dropped before they were read.
CREATE TABLE gaps (
  bucket TEXT NOT NULL,
  first  INTEGER NOT NULL,
  last   INTEGER NOT NULL,
  PRIMARY KEY (bucket, first)
) WITHOUT ROWID;

-- How far each bucket is folded.
CREATE TABLE positions (
  bucket      TEXT PRIMARY KEY,
  incarnation TEXT NOT NULL,
  begins      INTEGER NOT NULL, -- the first sequence that could be folded
  seq         INTEGER NOT NULL,
  id          TEXT NOT NULL,    -- of the fact at seq
  stored      INTEGER NOT NULL, -- its stored time, Unix milliseconds; 0: none
  facts       INTEGER NOT NULL  -- how many were read
) WITHOUT ROWID;

-- Who this file is, in one row.
CREATE TABLE archive (
  only          INTEGER PRIMARY KEY CHECK (only = 1),
  network       TEXT NOT NULL,
  incarnation   TEXT NOT NULL,
  fold          INTEGER NOT NULL,
  epoch         INTEGER NOT NULL, -- counts who has written it: only the last one may
  writer        TEXT NOT NULL,
  built         INTEGER NOT NULL, -- 1 once it has caught up with the log and has its indexes
  halted_bucket TEXT NOT NULL,
  halted_seq    INTEGER NOT NULL, -- 0: it goes on
  halted_reason TEXT NOT NULL
);

-- What the folds stand on, player by player, so that they can go on.
CREATE TABLE fold_state (
  player BLOB PRIMARY KEY,
  guard  INTEGER NOT NULL,
  stored INTEGER NOT NULL, -- Unix nanoseconds
  done   BLOB NOT NULL,
  active TEXT              -- JSON
) WITHOUT ROWID;

-- Players who reached the server of their token.
CREATE VIEW arrivals AS
  SELECT a.arrived_seq AS seq, t.id AS transfer, t.player, t.name, a.n AS attempt, a.server, a.region, a.world, a.x, a.y, a.z,
         a.arrived_at, a.arrived_at - t.requested_at AS after_ms, a.outcome = 'completed' AS placed
  FROM attempts a JOIN transfers t USING (place)
  WHERE a.arrived_seq IS NOT NULL;
