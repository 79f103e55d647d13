"""The controller of a running engine: a thread beside the epochs, and what is asked of it."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from headgate.adaptation.controller.choice import ControlSettings, PolicyChoice, PolicyMode
from headgate.adaptation.controller.controller import Controller
from headgate.adaptation.controller.guards import GuardRails
from headgate.adaptation.controller.live_policies import DEFAULT_POLICY, FALLBACK_POLICY, LIVE_POLICIES, live_policy
from headgate.adaptation.controller.records import decision_document
from headgate.adaptation.controller.windows import EpochGoal
from headgate.adaptation.look_ahead import PolicySettings
from headgate.documents.project_tables import ControlTable
from headgate.errors import BadValue, InputError
from headgate.model.cluster.vm_class import PER_SECOND, BillingPeriod
from headgate.model.span import seconds_of
from headgate.service.engine_machines import ScaledEngine
from headgate.store.entries import Entry
from headgate.store.journal import Journal

if TYPE_CHECKING:
    from headgate.runtime.engine.engine import Engine

__all__ = [
    "ControlLoop",
    "ControlOptions",
    "PolicyMode",
    "choice_facts",
    "control_loop",
    "control_options",
    "controlling",
    "policy_facts",
]

TICK_S = 1.0


@dataclass(frozen=True, slots=True)
class ControlOptions:
    """What an engine is started with; what somebody has chosen while it ran, or before, comes first."""

    policy: str = DEFAULT_POLICY
    mode: PolicyMode = PolicyMode.OFF
    rails: GuardRails = field(default_factory=GuardRails)
    every_s: float = 60.0
    window_s: float = 60.0
    longest_epoch_s: float = 2.0
    billing: BillingPeriod = PER_SECOND
    policy_settings: Mapping[str, Any] = field(default_factory=dict)
    """Of :class:`headgate.adaptation.look_ahead.PolicySettings`."""

    given: bool = False
    """Whether policy or mode were given with the command: then they count, whatever was chosen before."""

    def settings(self, trigger_s: float) -> ControlSettings:
        """As a controller needs them."""
        return ControlSettings(self.every_s, self.window_s, EpochGoal(trigger_s, self.longest_epoch_s))


def control_options(table: ControlTable, policy: str | None = None, mode: str | None = None) -> ControlOptions:
    """What a file of settings says, and what was given beside it."""

    def span_s(text: str) -> float:
        seconds = seconds_of(text)
        assert seconds is not None  # the table has checked it
        return seconds

    rails = GuardRails(
        table.budget_per_hour,
        table.max_machines,
        table.changes_per_hour,
        span_s(table.cooldown),
        span_s(table.shrink_after),
        span_s(table.floor),
        freeze_s=span_s(table.freeze),
    )
    try:
        options = ControlOptions(
            policy or table.policy,
            PolicyMode(mode or table.mode),
            rails,
            span_s(table.decide_every),
            span_s(table.window),
            span_s(table.longest_epoch),
            BillingPeriod(span_s(table.billing_period)),
            _policy_settings(table, span_s(table.decide_every)),
            given=policy is not None or mode is not None,
        )
        options.settings(0.5)
    except BadValue as error:
        raise InputError("BAD_SETTING", f"[control] in headgate.toml: {error.sentence}") from None
    live_policy(options.policy, options.policy_settings)
    return options


def _policy_settings(table: ControlTable, every_s: float) -> dict[str, Any]:
    """With what policies are made; raises :class:`InputError` for a forecaster that there is not."""
    spans = {
        "horizon_s": table.horizon,
        "season_s": table.season,
        "reallocation_interval_s": table.reallocate_after,
        "catch_up_s": table.catch_up,
    }
    settings = {name: seconds_of(text) for name, text in spans.items() if text is not None}
    made: dict[str, Any] = {"forecaster": table.forecaster, **settings}
    if table.forecaster.startswith("oracle"):
        raise InputError("BAD_FORECASTER", "[control] in headgate.toml: only simulations have oracles")
    PolicySettings(**made).recipe(every_s, 1)
    return made


class ControlLoop:
    """A controller that looks every second; use it in a ``with`` statement, within that of its engine."""

    def __init__(self, engine: ScaledEngine, controller: Controller) -> None:
        self.engine = engine
        self.controller = controller
        self.failure = ""
        """Why the last tick failed; empty if it did not."""

        self.cpu_s = self.running_s = 0.0
        """Seconds of a processor that deciding has taken so far, and seconds since it began."""

        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headgate-controller", daemon=True)

    @property
    def journal(self) -> Journal:
        return self.engine.journal

    def __enter__(self) -> ControlLoop:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Decide no more; waits for what is being done."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def choose(
        self,
        by: str,
        also: Sequence[Entry] = (),
        *,
        policy: str | None = None,
        mode: PolicyMode | None = None,
        **limits: Any,
    ) -> None:
        """Change what is named; all else stays. Raises :class:`InputError` for a policy that there is not."""
        known = self.controller.choice
        changed = replace(
            known,
            policy=known.policy if policy is None else policy,
            mode=known.mode if mode is None else mode,
            rails=replace(known.rails, **limits),
            by=by,
            reason="",
        )
        self.controller.choose(time.time(), changed, *also)

    def _bound_epochs(self) -> None:
        """Have epochs end in time for what is decided, as long as it is done."""
        acts = self.controller.choice.mode is PolicyMode.AUTO
        self.engine.scaling.longest_epoch_s = self.controller.settings.epochs.longest_s if acts else None

    def _run(self) -> None:
        began = time.monotonic()
        while not self._ended.wait(TICK_S):
            try:
                self._bound_epochs()
                self.controller.tick(time.time())
            except Exception as error:
                # Decisions stop until what is wrong has passed, such as a full disk; the dataflows go on.
                self.failure = f"{type(error).__name__}: {error}"
            else:
                self.failure = ""
            self.cpu_s, self.running_s = time.thread_time(), time.monotonic() - began


def control_loop(engine: Engine, options: ControlOptions, trigger_s: float, price_per_h: Decimal) -> ControlLoop:
    """The controller of an engine, which goes on with what its journal says."""
    from headgate.runtime.engine.controlled import ControlledEngine, ScalingProvider

    controller = Controller(
        ControlledEngine(engine, options.every_s, trigger_s, options.billing, price_per_h),
        None if engine.scaling.provider is None else ScalingProvider(engine.scaling),
        engine.journal,
        options.settings(trigger_s),
        lambda name: live_policy(name, options.policy_settings),
        FALLBACK_POLICY,
        PolicyChoice(options.policy, options.mode, options.rails),
        uuid.uuid4().hex[:12],
        options.policy_settings,
    )
    known = controller.choice
    # How fast it may go is a matter of settings; what it may cost, and on what, is chosen while it runs.
    rails = replace(options.rails, budget_per_h=known.rails.budget_per_h, machines_max=known.rails.machines_max)
    controller.choice = replace(known, rails=rails)
    if options.given and (known.policy, known.mode) != (options.policy, options.mode):
        chosen = replace(controller.choice, policy=options.policy, mode=options.mode, by="headgate run", reason="")
        controller.choose(time.time(), chosen)
    return ControlLoop(engine, controller)


@contextmanager
def controlling(
    engine: Engine, options: ControlOptions, trigger_s: float = 0.5, price_per_h: Decimal = Decimal("0.10")
) -> Iterator[ControlLoop]:
    """Let a controller decide for an engine, for as long as the block lasts."""
    with control_loop(engine, options, trigger_s, price_per_h) as loop:
        yield loop


def choice_facts(choice: PolicyChoice) -> dict[str, Any]:
    """What decides, in which mode and within which limits."""
    rails = choice.rails
    return {
        "policy": choice.policy,
        "mode": choice.mode.value,
        "budget_per_h": None if rails.budget_per_h is None else str(rails.budget_per_h),
        "machines_max": rails.machines_max,
        "by": choice.by,
        "reason": choice.reason,
    }


def policy_facts(loop: ControlLoop) -> dict[str, Any]:
    """What decides, what it thought last, and what is being done."""
    controller = loop.controller
    thought = controller.thought
    last = None
    if thought is not None:
        last = {
            "at": thought.at,
            "number": thought.number,
            **decision_document(thought.decision),
            "demand": thought.pressure.demand,
            "usable": thought.pressure.usable,
        }
    under_way = [{"number": record.number, "step": record.next_step} for record in controller.under_way]
    return {
        **choice_facts(controller.choice),
        "last": last,
        "under_way": under_way,
        "failure": loop.failure,
        "known": sorted(LIVE_POLICIES),
        "controller_cpu_s": loop.cpu_s,
        "controller_running_s": loop.running_s,
    }
