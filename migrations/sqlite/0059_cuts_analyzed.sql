-- needs 1
-- SQLite plans without statistics of these tables: there is nothing to do.

SELECT 1 WHERE FALSE;
