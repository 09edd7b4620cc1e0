-- Loses all schedules, and what tasks wait for. Runs that schedules started go on. Tasks that wait for a date or an answer end: the
-- service before would never go on with them.
UPDATE turns SET status = 'failed', ended_at = now(), lease_until = NULL, worker = NULL,
    problem = '{"code": "task.not_waiting", "status": 409, "detail": "tasks cannot wait any more"}'
WHERE status = 'waiting' AND id IN (SELECT turn_id FROM task_waits WHERE status = 'pending');
DROP TABLE task_waits;
DROP TABLE schedules;
