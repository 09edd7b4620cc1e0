-- Loses nothing but speed: an index alone.
DROP INDEX audit_of_user;
