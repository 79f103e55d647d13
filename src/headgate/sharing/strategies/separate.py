"""``none`` (NRU of SHARE): every dataflow is a group of its own and shares nothing."""

from __future__ import annotations

from dataclasses import replace

from headgate.sharing.change import GraphChange
from headgate.sharing.running import RunningSet
from headgate.sharing.strategies.base import GroupSteps, QueryGroup, Units

__all__ = ["Separate"]


class Separate:
    def submit(self, units: Units, change: GraphChange) -> tuple[Units, GroupSteps]:
        group = QueryGroup(active=change.own_tasks | change.shared_tasks)
        grown = units.with_groups([group])
        homes = {**grown.of_dataflow, change.dataflow: grown.made}
        return replace(grown, of_dataflow=homes), GroupSteps(launched=(group,))

    def withdraw(self, units: Units, change: GraphChange, after: RunningSet) -> tuple[Units, GroupSteps]:
        del after
        number = units.of_dataflow[change.dataflow]
        homes = {name: home for name, home in units.of_dataflow.items() if name != change.dataflow}
        shrunk = replace(units.with_groups([], without=[number]), of_dataflow=homes)
        return shrunk, GroupSteps(stopped=(units.groups[number],))
