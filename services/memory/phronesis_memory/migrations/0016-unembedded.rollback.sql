-- Loses which memories wait for their vectors: they are found by their words alone from then on, until vectors are rebuilt.
DROP TABLE unembedded;
