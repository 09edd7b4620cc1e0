-- Loses the proofs of forgettings of sources, and those that are not complete yet.
DROP TABLE source_forgettings;
