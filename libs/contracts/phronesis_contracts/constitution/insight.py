"""Contracts that reason over the constitutional graph: why, what if, topics, change over time, patterns, contradictions.

They propose; none of them deletes or rewrites a node.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, Field

from ..messages import Rpc
from ..principal import Agent
from ..tools import Risk, Tool
from . import search
from .paths import Step
from .registry import Layer
from .values import EVERY_LAYER, READERS, Asked, Camel, ConstitutionNode, Mention, NodeId, absent


class AskWhy(Asked):
    """Why a node serves another."""

    from_id: str = Field(min_length=1, max_length=200)
    to_id: str | None = Field(default=None, max_length=200)
    """Every value and vision that it comes to where none is named."""
    limit: int = Field(default=5, ge=1, le=20)


class Reason(Camel):
    """A chain of reasons, upwards, and the sentence that says it. Upwards is what is served, aligned with, rested on or
    enforced, and the strategy of an initiative."""

    path: tuple[Step, ...]
    sentence: str


class WhyAnswered(Camel):
    """The shortest chains first; none where there is none. To a node that is named up to `limit` chains, else one to each."""

    reasons: tuple[Reason, ...]


class WithoutNode(NodeId):
    """What would lose its support without a node. The graph itself is not changed."""

    limit: int = Field(default=100, ge=1, le=500)


class Loss(Camel):
    """A node, and the values or visions that nothing else joins it to."""

    node: Mention
    lost: tuple[Mention, ...]


class LossesFound(Camel):
    """Nodes that lose every way to a value or a vision first, then those that lose some."""

    orphaned: tuple[Loss, ...]
    weakened: tuple[Loss, ...]
    total: int


class CheckPolicy(Asked):
    """Something that is to be decided or written, to be held against guardrails and principles."""

    text: str = Field(min_length=1, max_length=20_000)
    type: str | None = Field(default=None, max_length=64)
    fields: dict[str, Any] = Field(default_factory=dict, max_length=40)
    """Figures that triggers may compare, such as `effortHours`."""


class RuleHit(Camel):
    """A rule that it goes against."""

    rule: Mention
    severity: Literal["block", "acknowledge"]
    because: str
    response: str | None = absent()


class PolicyChecked(Camel):
    """The rules that it goes against; those that block first."""

    hits: tuple[RuleHit, ...]
    allowed: bool
    """Whether it may be written once the others are acknowledged."""
    unenforced: tuple[Mention, ...] = ()
    """Active guardrails without a trigger: nothing is held against them."""


class ListTopics(Asked):
    """Topics of the graph: clusters of its vectors."""

    layers: tuple[Layer, ...] = Field(default=(), max_length=7)
    refresh: bool = False


class Topic(Camel):
    """One topic."""

    id: str
    keywords: tuple[str, ...]
    size: int
    nodes: tuple[Mention, ...]
    """Those nearest to its middle."""


class TopicsListed(Camel):
    """The largest first."""

    topics: tuple[Topic, ...]
    silhouette: float
    """Mean over all nodes that are in a topic, by cosine distance."""
    unassigned: int
    computed_at: AwareDatetime


class TopicNodes(Asked):
    """The nodes of a topic."""

    topic_id: str = Field(min_length=1, max_length=64)
    limit: int = Field(default=50, ge=1, le=500)


class TopicNodesFound(Camel):
    """Those nearest to its middle first."""

    nodes: tuple[Mention, ...]
    total: int


class AskEvolution(NodeId):
    """How a node changed."""

    limit: int = Field(default=100, ge=1, le=1_000)


class VersionSeen(Camel):
    """One version."""

    version: int
    at: AwareDatetime
    actor: str
    changed: dict[str, tuple[Any, Any]]
    """By field, what it was and what it became."""
    drift: float | None = absent()
    """1 - cosine to the version before, where both have vectors."""


class EvolutionTold(Camel):
    """The versions, oldest first, and the same in sentences."""

    versions: tuple[VersionSeen, ...]
    narrative: str
    drifted: bool


class ReportDrift(Asked):
    """Nodes whose meaning moved."""

    since: str | None = Field(default=None, max_length=40)
    layers: tuple[Layer, ...] = Field(default=(), max_length=7)
    threshold: float = Field(default=search.DRIFT_DISTANCE, ge=0.0, le=2.0)
    limit: int = Field(default=50, ge=1, le=500)


class Drifted(Camel):
    """A node that moved by more than the threshold, at once or over several changes."""

    node: Mention
    drift: float
    versions: int
    at: AwareDatetime


class DriftReported(Camel):
    """The largest first."""

    findings: tuple[Drifted, ...]


class DetectPatterns(Asked):
    """Look for what repeats."""

    kinds: tuple[Literal["recurring_failure", "high_roi_decision", "strategy_archetype"], ...] = Field(default=(), max_length=3)
    min_roi: float | None = None
    """What counts as a high return; the upper quarter where none is named."""
    propose: bool = False
    """Put what is found into the mind layer, as drafts with their evidence."""


class PatternFound(Camel):
    """A pattern, with the nodes that show it."""

    kind: str
    title: str
    confidence: float
    nodes: tuple[Mention, ...]
    node_id: str | None = absent()
    """Of the draft in the mind layer."""


class PatternsDetected(Camel):
    """The surest first."""

    patterns: tuple[PatternFound, ...]
    proposed: int = 0


class FindAnalogies(NodeId):
    """Past successes that are like a goal."""

    limit: int = Field(default=5, ge=1, le=50)


class Analogy(Camel):
    """A node that is alike, and what was done for it."""

    node: ConstitutionNode
    score: float
    strategies: tuple[Mention, ...] = ()


class AnalogiesFound(Camel):
    """The most alike first."""

    analogies: tuple[Analogy, ...]


class FindContradictions(Asked):
    """Nodes that cannot both be followed."""

    types: tuple[str, ...] = Field(default=("principle", "value", "guardrail", "goal"), max_length=35)
    limit: int = Field(default=20, ge=1, le=200)


class Contradiction(Camel):
    """A pair, and why."""

    one: Mention
    other: Mention
    score: float
    """Cosine: how much they speak of the same."""
    because: str


class ContradictionsFound(Camel):
    """Stated ones (`CONTRADICTS`) first, then the surest."""

    pairs: tuple[Contradiction, ...]
    compared: int = 0
    """Nodes that were held against each other, which is a bounded number."""


class FindDuplicates(Asked):
    """Nodes that say nearly the same."""

    threshold: float = Field(default=search.DUPLICATE_COSINE, ge=0.0, le=1.0)
    layers: tuple[Layer, ...] = Field(default=(), max_length=7)
    limit: int = Field(default=50, ge=1, le=500)


class Duplicate(Camel):
    """A pair of one type."""

    one: Mention
    other: Mention
    score: float


class DuplicatesFound(Camel):
    """The most alike first."""

    pairs: tuple[Duplicate, ...]


WHY = Rpc("graph.v1.constitution.why", AskWhy, WhyAnswered, timeout=30.0)
WITHOUT = Rpc("graph.v1.constitution.without", WithoutNode, LossesFound, timeout=30.0)
CHECK_POLICY = Rpc("graph.v1.constitution.policy.check", CheckPolicy, PolicyChecked)
TOPICS = Rpc("memory.v1.constitution.topics", ListTopics, TopicsListed, timeout=60.0)
TOPIC_NODES = Rpc("memory.v1.constitution.topic", TopicNodes, TopicNodesFound, timeout=30.0)
EVOLUTION = Rpc("memory.v1.constitution.evolution", AskEvolution, EvolutionTold, timeout=10.0)
DRIFT = Rpc("memory.v1.constitution.drift", ReportDrift, DriftReported, timeout=15.0)
PATTERNS = Rpc("memory.v1.constitution.patterns", DetectPatterns, PatternsDetected, timeout=60.0)
ANALOGIES = Rpc("memory.v1.constitution.analogies", FindAnalogies, AnalogiesFound, timeout=10.0)
CONTRADICTIONS = Rpc("memory.v1.constitution.contradictions", FindContradictions, ContradictionsFound, timeout=30.0)
DUPLICATES = Rpc("memory.v1.constitution.duplicates", FindDuplicates, DuplicatesFound, timeout=30.0)

WHY_TOOL = Tool("graph.why.v1", "Why a goal or task serves a value: the chain of reasons.", WHY, agents=READERS)
WITHOUT_TOOL = Tool("graph.without.v1", "What would lose its support without a node.", WITHOUT, agents=READERS)
CHECK_POLICY_TOOL = Tool(
    "policy.check.v1", "Hold a decision or a text against guardrails and principles.", CHECK_POLICY, agents=READERS
)
TOPICS_TOOL = Tool("topics.list.v1", "Topics of the graph, with keywords.", TOPICS, agents=READERS)
TOPIC_NODES_TOOL = Tool("topics.nodes.v1", "The nodes of a topic.", TOPIC_NODES, agents=READERS)
EVOLUTION_TOOL = Tool("node.evolution.v1", "How a node changed over time.", EVOLUTION, agents=READERS)
DRIFT_TOOL = Tool("drift.report.v1", "Nodes whose meaning moved.", DRIFT, agents=READERS)
PATTERNS_TOOL = Tool(
    "patterns.detect.v1",
    "What repeats: failed goals, decisions that paid off, strategies that worked. Can propose drafts.",
    PATTERNS,
    risk=Risk.LOW,
    agents=EVERY_LAYER | {Agent.MIND},
)
ANALOGIES_TOOL = Tool("goal.analogies.v1", "Past successes like a goal, and what was done for them.", ANALOGIES, agents=READERS)
CONTRADICTIONS_TOOL = Tool("contradictions.find.v1", "Nodes that cannot both be followed.", CONTRADICTIONS, agents=READERS)
DUPLICATES_TOOL = Tool("duplicates.find.v1", "Nodes that say nearly the same.", DUPLICATES, agents=READERS)
