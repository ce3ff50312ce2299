-- needs 10
-- Indexes of grants whose entries are short: parts of the ids of client and person, which are
-- compared in full when a row is read, and the beginning of the grant's own id, whose order is
-- that of the whole. How far two walks along the grants, in the order in which they were
-- stored, have come (see walk.go).

CREATE INDEX grants_by_client ON grants (substr(client_id, 9, 4) || substr(client_id, -8), substr(id, 1, 11));
CREATE INDEX grants_by_pair ON grants (substr(user_id, -8), substr(client_id, 9, 4) || substr(client_id, -8));
CREATE TABLE grant_walks (codes INTEGER NOT NULL, newer INTEGER NOT NULL) STRICT;
INSERT INTO grant_walks (codes, newer) SELECT coalesce(max(status_index), 0), coalesce(max(status_index), 0) FROM grants;
