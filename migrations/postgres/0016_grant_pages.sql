-- needs 10
-- A redeemed grant is a sixth shorter than it was with its code, so a page that was filled has
-- room for a rotation; what the codes have left is given back before it adds up.

ALTER TABLE grants SET (fillfactor = 95, autovacuum_vacuum_scale_factor = 0.02);
