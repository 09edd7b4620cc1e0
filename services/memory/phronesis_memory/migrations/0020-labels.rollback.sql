-- Loses where what is remembered comes from.
ALTER TABLE fact_sources DROP COLUMN labels;
ALTER TABLE facts DROP COLUMN labels;
ALTER TABLE profiles DROP COLUMN labels;
ALTER TABLE item_versions DROP COLUMN labels;
ALTER TABLE items DROP COLUMN labels;
