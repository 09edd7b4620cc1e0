"""All that the instructions service answers."""

from __future__ import annotations

import asyncio
import contextlib

from phronesis_bus import Bus, Relay, follow, serve, serve_basics
from phronesis_contracts import agents, experiments, instructions
from phronesis_contracts.deletions import USER_DATA, USER_ERASE
from phronesis_postgres import Database, PostgresOutbox

from .agents.handlers import AgentHandlers
from .agents.store import PostgresAgents
from .library.handlers import Content, LibraryCache, LibraryHandlers
from .library.store import PostgresStore
from .releases.handlers import ExperimentHandlers, ReleaseHandlers, UserHandlers
from .releases.store import PostgresExperiments, PostgresExposures, PostgresReleases
from .settings import InstructionsSettings


async def build(bus: Bus, database: Database, contents: tuple[Content, ...], settings: InstructionsSettings) -> None:
    """Wire the service to the bus, and begin to load its content."""
    store, relay = PostgresStore(database), Relay(bus, PostgresOutbox(database))
    relay.start()
    libraries = LibraryCache(store, settings.cache_seconds)
    exposures = PostgresExposures(database, relay.wake)
    handlers, of_users = LibraryHandlers(store, libraries, exposures), UserHandlers(exposures)
    publishing = ReleaseHandlers(libraries, PostgresReleases(database), relay.wake)
    experimenting = ExperimentHandlers(libraries, PostgresExperiments(database), relay.wake)
    of_agents = AgentHandlers(libraries, handlers, PostgresAgents(database), relay.wake)
    loading = asyncio.create_task(handlers.load(contents, settings.retry_seconds, relay.wake), name="load-content")

    async def stop_loading() -> None:
        loading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await loading

    bus.on_stop(stop_loading)
    await follow(bus, instructions.RELEASED, libraries.on_released, every_copy=True)
    await serve(bus, instructions.AGENT_GET, handlers.agent_get)
    await serve(bus, instructions.AGENT_LIST, handlers.agent_list)
    await serve(bus, instructions.RETRIEVE_INSTRUCTIONS_TOOL, handlers.retrieve_instructions)
    await serve(bus, instructions.RETRIEVE_AT, handlers.retrieve_at)
    await serve(bus, instructions.LIST_INSTRUCTIONS_TOOL, publishing.list_instructions)
    await serve(bus, instructions.SHOW_INSTRUCTION_TOOL, publishing.show_instruction)
    await serve(bus, instructions.DIFF_INSTRUCTIONS_TOOL, publishing.diff_instructions)
    await serve(bus, instructions.PUBLISH_INSTRUCTIONS_TOOL, publishing.publish_instructions)
    await serve(bus, instructions.ROLLBACK_INSTRUCTIONS_TOOL, publishing.rollback_instructions)
    await serve(bus, instructions.LIST_RELEASES_TOOL, publishing.list_releases)
    await serve(bus, agents.LIST_AGENTS_TOOL, of_agents.list)
    await serve(bus, agents.SHOW_AGENT_TOOL, of_agents.show)
    await serve(bus, agents.AGENT_VERSIONS_TOOL, of_agents.versions)
    await serve(bus, agents.DIFF_AGENT_TOOL, of_agents.diff)
    await serve(bus, agents.KEEP_AGENT, of_agents.publish)
    await serve(bus, agents.ROLL_BACK_AGENT_TOOL, of_agents.rollback)
    await serve(bus, agents.DELETE_AGENT_TOOL, of_agents.delete)
    await serve(bus, experiments.START_EXPERIMENT_TOOL, experimenting.start_experiment)
    await serve(bus, experiments.STOP_EXPERIMENT_TOOL, experimenting.stop_experiment)
    await serve(bus, experiments.LIST_EXPERIMENTS_TOOL, experimenting.list_experiments)
    await serve(bus, experiments.REPORT_EXPERIMENT_TOOL, experimenting.report_experiment)
    await serve(bus, experiments.RECORD_OUTCOME_TOOL, experimenting.record_outcome)
    await serve(bus, USER_DATA["instructions"], of_users.held)
    await serve(bus, USER_ERASE["instructions"], of_users.erase)
    await serve_basics(bus, {"postgres": store.ping, "content": handlers.ready, "tier1_bootstrap": handlers.tier_1})
