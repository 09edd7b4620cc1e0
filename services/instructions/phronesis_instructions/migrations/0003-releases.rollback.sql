-- Loses the tenants' own releases and experiments with all that came of them. What the platform itself tells its agents stays.
DROP VIEW tier2_combined;
DROP TABLE outcomes;
DROP TABLE exposures;
DROP TABLE arm_texts;
DROP TABLE experiment_arms;
DROP TABLE experiments;
DROP TABLE release_texts;
DROP TABLE releases;
UPDATE instruction_elements SET tier = 3 WHERE 'directive' = ANY (use_cases) AND tier = 1;
ALTER TABLE agent_profiles DROP COLUMN bootstrap;
ALTER TABLE instruction_elements DROP COLUMN position;
