-- needs 1
-- What was asked and answered on the way to a token, one row for each request, and the keys by which
-- the requests of one attempt are found. A seq is never given twice.

CREATE TABLE attempt_steps (
    seq        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         BIGINT NOT NULL,
    kept_until BIGINT NOT NULL,
    keys       TEXT NOT NULL,
    body       TEXT NOT NULL
);
CREATE INDEX attempt_steps_at ON attempt_steps (at);
CREATE INDEX attempt_steps_kept ON attempt_steps (kept_until);
CREATE TABLE attempt_keys (
    seq BIGINT NOT NULL REFERENCES attempt_steps (seq) ON DELETE CASCADE,
    key TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (seq, key)
);
CREATE INDEX attempt_keys_by_key ON attempt_keys (key, seq);
