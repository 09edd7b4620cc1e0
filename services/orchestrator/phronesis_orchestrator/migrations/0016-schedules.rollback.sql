-- Loses all schedules. Runs that they started go on.
DROP TABLE schedules;
