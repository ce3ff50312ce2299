-- needs 10
-- Authorization servers to which this one asserts who people are, with the policy for each as JSON.

CREATE TABLE audiences (
    issuer     TEXT COLLATE "C" PRIMARY KEY,
    policy     TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
