-- Loses what users said about answers.
DROP INDEX turns_of_tenant;
DROP INDEX turns_unhelpful;
DROP INDEX turns_helpful;
ALTER TABLE turns DROP COLUMN helpful, DROP COLUMN remark, DROP COLUMN rated_at;
