-- What still waits for its vectors is found by its words alone from then on; rebuilding the vectors mends it.
DROP TABLE unembedded;
