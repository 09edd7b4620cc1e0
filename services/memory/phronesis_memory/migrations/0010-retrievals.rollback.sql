-- Loses the log of retrievals with its ratings, and what tenants changed of their searches.
DROP TABLE constitution_tuning;
DROP TABLE constitution_ratings;
DROP TABLE constitution_retrievals;
