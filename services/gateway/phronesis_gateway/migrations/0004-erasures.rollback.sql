-- Loses the proofs of erasures, those that are not complete yet, and for how long tenants keep what.
DROP TABLE erasures;
DROP TABLE retention;
