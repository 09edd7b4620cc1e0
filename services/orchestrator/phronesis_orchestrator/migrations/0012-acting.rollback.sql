-- Loses who acted for whom in the audit trail.
ALTER TABLE audit DROP COLUMN acted_by;
