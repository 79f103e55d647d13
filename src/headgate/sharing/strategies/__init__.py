"""Strategies: how a change of the running set is carried out where it runs.

What is launched and stopped as one is a *query group*: a Storm topology in SHARE, streaming queries here. The
strategies are the paper's four and ours:

==================  ====  =============================================================================================
``none``            NRU   every dataflow is a group of its own and shares nothing
``incremental``     RU    new tasks become a group, fed by a proxy for each running task that it reads; tasks that
                          nobody needs any more are paused in place, and resumed when they are needed again
``replace``         MR    a submission stops the groups that it links and launches one in their place, without proxies;
                          paused tasks stay
``replace-prune``   MPR   as ``replace``, also after a withdrawal, and without the paused tasks
``hot``             ours  tasks join and leave running groups in place; only a new source is launched, and only a
                          source that nobody reads any more is stopped
==================  ====  =============================================================================================

Each is a module with one :class:`~headgate.sharing.strategies.base.Strategy`. Everything is pure: from groups and a
change to the next groups and the steps that lead there. SHARE adds a proxy for each boundary stream; here two streams
from one running task share a proxy, since the proxy forwards the task's whole output.
"""

from __future__ import annotations

from collections.abc import Mapping

from headgate.model.strategy import StrategyName
from headgate.sharing.change import GraphChange, Operation
from headgate.sharing.running import RunningSet
from headgate.sharing.strategies.base import GroupSteps, QueryGroup, Strategy, Units
from headgate.sharing.strategies.hot import Hot
from headgate.sharing.strategies.incremental import Incremental
from headgate.sharing.strategies.replace import Replace, ReplacePrune
from headgate.sharing.strategies.separate import Separate

__all__ = ["STRATEGIES", "GroupSteps", "QueryGroup", "Strategy", "Units", "deploy"]

STRATEGIES: Mapping[StrategyName, Strategy] = {
    StrategyName.NONE: Separate(),
    StrategyName.INCREMENTAL: Incremental(),
    StrategyName.REPLACE: Replace(),
    StrategyName.REPLACE_PRUNE: ReplacePrune(),
    StrategyName.HOT: Hot(),
}


def deploy(name: StrategyName, units: Units, change: GraphChange, after: RunningSet) -> tuple[Units, GroupSteps]:
    """Carry out a change; ``after`` is the running set that it has led to.

    >>> from headgate.documents import parse
    >>> sink = "{{id: c, type: write_memory, config: {{name: {0}}}, inputs: [r]}}"
    >>> text = "name: {0}\\ntasks: [{{id: r, type: rate}}, " + sink + "]"
    >>> running, units = RunningSet(), Units()
    >>> for name in ("one", "two"):
    ...     running, change = running.submit(parse(text.format(name), "yaml").dataflow)
    ...     units, steps = deploy(StrategyName.INCREMENTAL, units, change, running)
    >>> [(len(group.active), len(group.proxies)) for group in units.groups.values()]
    [(2, 0), (1, 1)]
    """
    strategy = STRATEGIES[name]
    if change.operation is Operation.SUBMIT:
        return strategy.submit(units, change)
    return strategy.withdraw(units, change, after)
