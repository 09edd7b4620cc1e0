-- depends: 0021-feedback

-- Whether anybody's turn waits for a worker: one bit, for the transaction of a tenant that would have its own run at once.
CREATE FUNCTION a_turn_waits() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    mine text := current_setting('phronesis.tenant');
    found boolean;
BEGIN
    PERFORM set_config('phronesis.tenant', '*', true);
    found := EXISTS (
        SELECT FROM turns WHERE status = 'queued' AND NOT background AND (lease_until IS NULL OR lease_until < now())
    ) OR EXISTS (
        SELECT FROM turns WHERE status = 'running' AND NOT background AND lease_until < now()
    );
    PERFORM set_config('phronesis.tenant', mine, true);
    RETURN found;
END
$$;
