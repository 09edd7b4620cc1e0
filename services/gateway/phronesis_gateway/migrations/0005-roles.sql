-- depends: 0004-erasures

-- What a key may do stands in `access` (owner, admin, member, reader) and `agents`. `role` stays for copies of the version
-- before, which run beside this one during an update: it has the word by which they give no right that the key does not have.
-- A key that such a copy enters meanwhile has no more than `role`.
ALTER TABLE keys ADD COLUMN access text;
ALTER TABLE keys ADD COLUMN agents text[];
UPDATE keys SET
    access = CASE role WHEN 'admin' THEN 'admin' ELSE 'member' END,
    agents = CASE role WHEN 'admin' THEN '{}' ELSE ARRAY[role] END;
ALTER TABLE keys ADD CONSTRAINT keys_have_their_rights CHECK ((access IS NULL) = (agents IS NULL));
