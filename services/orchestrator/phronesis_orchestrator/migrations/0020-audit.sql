-- depends: 0019-shares

-- What was done for one user, newest first.
CREATE INDEX audit_of_user ON audit (tenant, who, at DESC);
