-- Loses what people were asked and answered. Turns that wait for an answer end: the service before would never go on with them.
UPDATE turns SET status = 'failed', ended_at = now(), lease_until = NULL, worker = NULL,
    problem = '{"code": "approval_expired", "status": 409, "detail": "nobody can be asked for an approval any more"}'
WHERE status = 'waiting';
DROP TABLE approvals;
ALTER TABLE turns DROP COLUMN approval_id;
ALTER TABLE conversations DROP COLUMN moved;
