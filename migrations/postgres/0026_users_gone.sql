-- needs 10
-- What belongs to a person goes with them, also when a replica deletes them that does not know these
-- tables: a person who comes back from a provider has the same id again.

CREATE FUNCTION users_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM ways WHERE user_id = OLD.id;
    DELETE FROM recovery_codes WHERE user_id = OLD.id;
    DELETE FROM notices WHERE user_id = OLD.id;
    DELETE FROM one_time_links WHERE user_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER users_gone AFTER DELETE ON users FOR EACH ROW EXECUTE FUNCTION users_gone();

DELETE FROM ways w WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.id = w.user_id);
DELETE FROM recovery_codes r WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.id = r.user_id);
DELETE FROM notices n WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.id = n.user_id);
DELETE FROM one_time_links l WHERE l.user_id <> '' AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id = l.user_id);
