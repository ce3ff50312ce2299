-- needs 10
-- What belongs to a person goes with them, also when a program deletes them that does not know these
-- tables: a person who comes back from a provider has the same id again.

CREATE TRIGGER users_gone AFTER DELETE ON users BEGIN
    DELETE FROM ways WHERE user_id = OLD.id;
    DELETE FROM recovery_codes WHERE user_id = OLD.id;
    DELETE FROM notices WHERE user_id = OLD.id;
    DELETE FROM one_time_links WHERE user_id = OLD.id;
END;

DELETE FROM ways WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.id = ways.user_id);
DELETE FROM recovery_codes WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.id = recovery_codes.user_id);
DELETE FROM notices WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.id = notices.user_id);
DELETE FROM one_time_links WHERE user_id <> '' AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id = one_time_links.user_id);
