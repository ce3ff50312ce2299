-- needs 1
-- Since when, and how well, the person who answers a device has to have proved who they are. A server of an
-- earlier version does not ask, and the resource then refuses the token.

ALTER TABLE devices ADD COLUMN proved_after INTEGER;
ALTER TABLE devices ADD COLUMN acr TEXT NOT NULL DEFAULT '';
