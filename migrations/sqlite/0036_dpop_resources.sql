-- needs 1
-- Whether tokens for a resource have to be bound to a key of the client: '' or 'required'. A server of an
-- earlier version does not ask, and issues no bound tokens.

ALTER TABLE resources ADD COLUMN dpop TEXT NOT NULL DEFAULT '';
