-- depends: 0017-triggers

-- What a turn that was put back waits for, `{"service", "code", "tries", "since"}`, and seconds that it has waited so. A service of
-- the version before neither reads nor writes them: it claims such a turn when its time has come, as any other.
ALTER TABLE turns ADD COLUMN wait jsonb;
ALTER TABLE turns ADD COLUMN waited_seconds double precision NOT NULL DEFAULT 0;
