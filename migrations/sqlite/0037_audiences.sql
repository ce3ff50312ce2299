-- needs 13
-- Authorization servers to which this one asserts who people are, with the policy for each as JSON.

CREATE TABLE audiences (
    issuer     TEXT PRIMARY KEY,
    policy     TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
