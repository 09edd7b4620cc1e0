-- Loses tenants' policies of actions and the consents that cover later calls: each call is asked about again. Of approvals it loses
-- the origins that they were asked because of.
DROP INDEX audit_of_turn;
DROP TABLE approval_grants;
DROP TABLE action_policies;
ALTER TABLE approvals DROP COLUMN scope;
ALTER TABLE approvals DROP COLUMN grantable;
ALTER TABLE approvals DROP COLUMN host;
ALTER TABLE approvals DROP COLUMN because;
ALTER TABLE approvals DROP COLUMN effect;
