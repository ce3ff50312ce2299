-- needs 1
-- The sign-in page asks whether any account has a password.

CREATE INDEX users_with_password ON users (id) WHERE password_hash <> '';
