-- Loses nothing: a turn is queued before it is claimed.
DROP FUNCTION a_turn_waits();
