-- Loses what model calls cost, the limits, and the traces of answers; no turn can be replayed any more.
DROP TABLE ran_with;
DROP TABLE traces;
DROP TABLE limits;
DROP TABLE ledger;
