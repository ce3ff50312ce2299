-- needs 1
-- The nodes that were cut. A status list asks of each of its nodes whether one above it is cut; of the
-- nodes of its grant, few are.

CREATE INDEX nodes_cut ON nodes (grant_id) WHERE cut_at IS NOT NULL;
