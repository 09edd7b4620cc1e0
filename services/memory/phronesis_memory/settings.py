"""The settings of the memory service, of experience and of the constitutional graph's searches."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class MemorySettings(BaseSettings):
    """Settings with the prefix `MEMORY_`."""

    model_config = SettingsConfigDict(env_prefix="MEMORY_", frozen=True)

    embedding_url: str | None = None
    """Address of an OpenAI-compatible service, before `/embeddings`; the local model is used without it."""
    embedding_key: SecretStr | None = None
    """Bearer key for that address."""
    embedding_model: str = "text-embedding-3-small"
    """Name of the model at that address."""
    embedding_dimension: int = Field(default=1536, ge=2, le=4000)
    """Numbers in that model's vectors."""
    similarity_floor: float | None = None
    """Cosine below which that model's texts are unrelated; the local model has its own, 0.28."""
    threads: int = Field(default=2, ge=1)
    """Threads of the local model, each of which embeds a batch of its own on one core."""
    query_cache_seconds: float = Field(default=900.0, ge=0)
    """Seconds that the vector of a question is kept."""
    query_cache_size: int = Field(default=2_048, ge=1)
    """Vectors of questions that are kept at most."""
    exact_rows: int = Field(default=10_000, ge=0)
    """Scopes up to this many rows are searched exactly, larger ones by HNSW unless they are a small part of a large table; with
    0 all are searched by HNSW."""
    ef_search: int = Field(default=160, ge=1, le=1_000)
    """Candidates that one step of the HNSW scan holds, up to 200,000 rows of a table; twice as many for four times the rows."""
    max_scan: int = Field(default=20_000, ge=1)
    """Tuples that the HNSW scan may visit before the exact search takes over."""
    candidates: int = Field(default=50, ge=10, le=500)
    """Items that each of the two searches hands to the ranking."""
    seeds_per_phrase: int = Field(default=5, ge=1, le=25)
    """Seeds of one key phrase."""
    max_seeds: int = Field(default=25, ge=1, le=25)
    """Seeds of one retrieval."""
    stage_seconds: float = Field(default=1.0, gt=0)
    """Seconds that one stage of a search may take before the answer goes without it."""


class ConstitutionSettings(BaseSettings):
    """Settings with the prefix `CONSTITUTION_`."""

    model_config = SettingsConfigDict(env_prefix="CONSTITUTION_", frozen=True)

    drift_recompute: bool = True
    """Embed the constitutional graph's nodes anew each week or month, to see whether the model's vectors drifted."""


class DocumentSettings(BaseSettings):
    """Settings with the prefix `DOCUMENT_`."""

    model_config = SettingsConfigDict(env_prefix="DOCUMENT_", frozen=True)

    passages: int = Field(default=20_000, ge=1)
    """Passages that the documents of one conversation may have; what is beyond them is not kept, and said to be left out."""


class WeaviateSettings(BaseSettings):
    """Settings with the prefix `WEAVIATE_`."""

    model_config = SettingsConfigDict(env_prefix="WEAVIATE_", frozen=True)

    url: str | None = None
    """Address of Weaviate, such as `http://weaviate:8080`; vectors are kept in Postgres, by pgvector, without it."""
    grpc_url: str = "http://127.0.0.1:50051"
    """Address of its gRPC endpoint; `https` for one with TLS."""
    key_file: Path | None = None
    """File with the key that Weaviate asks for, if it asks for one."""
    max_connections: int = Field(default=32, ge=4, le=128)
    """HNSW: links of a vector. A change holds for collections made from then on, as a rebuild makes them."""
    ef_construction: int = Field(default=128, ge=8, le=1_000)
    """HNSW: candidates when a vector is put in; changed as the links are."""


class RetrievalSettings(BaseSettings):
    """Settings with the prefix `MEMORY_RETRIEVAL_`."""

    model_config = SettingsConfigDict(env_prefix="MEMORY_RETRIEVAL_", frozen=True)

    log_days: float = Field(default=30.0, gt=0)
    """Days that the log of searches and their ratings are kept."""
    log_words: bool = False
    """Whether the log keeps the words of questions; their hash alone stands in it without."""


_UNRELATED = 0.6
"""The cosine below which goals are taken for unrelated where the model states no line of its own."""


class ExperienceSettings(BaseSettings):
    """Settings with the prefix `EXPERIENCE_`."""

    model_config = SettingsConfigDict(env_prefix="EXPERIENCE_", frozen=True)

    similarity_floor: float | None = Field(default=None, ge=-1, le=1)
    """Cosine below which a strategy's goal is unrelated; by default the model's own line, else 0.6."""
    query_seconds: float = Field(default=3.0, gt=0)
    """Seconds that one `memory_query` may take before it says that the memory is unavailable."""

    def floor(self, of_model: float | None) -> float:
        """The cosine below which a strategy's goal is unrelated."""
        if self.similarity_floor is not None:
            return self.similarity_floor
        return _UNRELATED if of_model is None else of_model
