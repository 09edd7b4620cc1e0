-- Loses who is signed in at the console, and which tickets of the last minute were used.
DROP TABLE used_tickets;
DROP TABLE sessions;
