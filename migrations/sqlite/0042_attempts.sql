-- needs 1
-- What was asked and answered on the way to a token, one row for each request, and the keys by which
-- the requests of one attempt are found. A seq is never given twice.

CREATE TABLE attempt_steps (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    at         INTEGER NOT NULL,
    kept_until INTEGER NOT NULL,
    keys       TEXT NOT NULL,
    body       TEXT NOT NULL
) STRICT;
CREATE INDEX attempt_steps_at ON attempt_steps (at);
CREATE INDEX attempt_steps_kept ON attempt_steps (kept_until);
CREATE TABLE attempt_keys (
    seq INTEGER NOT NULL REFERENCES attempt_steps (seq) ON DELETE CASCADE,
    key TEXT NOT NULL,
    PRIMARY KEY (seq, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX attempt_keys_by_key ON attempt_keys (key, seq);
