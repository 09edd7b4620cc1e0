-- Loses no data: topics are found again from the vectors.
DROP TABLE constitution_topic_runs;
DROP TABLE constitution_topic_nodes;
DROP TABLE constitution_topics;
