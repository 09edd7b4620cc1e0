-- Loses no data: vectors that come from then on are linked with fewer candidates.
ALTER INDEX vectors_384 RESET (ef_construction);
ALTER INDEX vectors_768 RESET (ef_construction);
ALTER INDEX vectors_1024 RESET (ef_construction);
ALTER INDEX vectors_1536 RESET (ef_construction);
ALTER INDEX constitution_vectors_384 RESET (ef_construction);
ALTER INDEX constitution_vectors_768 RESET (ef_construction);
ALTER INDEX constitution_vectors_1024 RESET (ef_construction);
ALTER INDEX constitution_vectors_1536 RESET (ef_construction);
ALTER INDEX constitution_vectors_3072 RESET (ef_construction);
