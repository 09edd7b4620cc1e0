-- Loses how the nodes of the constitutional graph changed over time. Their vectors are made again from the graph.
DROP TABLE constitution_schedule;
DROP TABLE constitution_untold;
DROP TABLE constitution_versions;
DROP TABLE constitution_pairs;
DROP TABLE constitution_vectors;
DROP TABLE constitution_nodes;
