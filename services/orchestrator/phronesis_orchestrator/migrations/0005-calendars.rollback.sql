-- Loses what users said of their calendars and working hours; the calendars themselves are elsewhere.
DROP TABLE calendars;
