-- Loses the documents of conversations; the media they were read from stay.
DELETE FROM vectors WHERE starts_with(owner, 'documents:');
DELETE FROM items WHERE starts_with(owner, 'documents:');
DELETE FROM scopes WHERE starts_with(owner, 'documents:');
DROP TABLE documents;
