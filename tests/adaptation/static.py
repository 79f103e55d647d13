"""A policy on observations that deploys once and never changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.adaptation.actions import AcquireMachine, Action, AssignCores, SwitchAlternate
from headgate.model.cluster.deployment import Deployment
from headgate.model.cluster.observation import Observation
from headgate.model.names import Signature

__all__ = ["Static", "deploying"]


def deploying(deployment: Deployment, observed: Observation) -> tuple[Action, ...]:
    """The actions that apply a deployment to a cluster without machines."""
    signatures = {task.name: task.task for task in observed.tasks}
    actions: list[Action] = [
        SwitchAlternate(signatures[task], alternate)
        for task, alternate in deployment.alternates.items()
        if alternate != _active(observed, signatures[task])
    ]
    for number, machine in enumerate(deployment.machines):
        name = f"new-{number}"
        actions.append(AcquireMachine(machine.vm_class, name))
        actions += [AssignCores(task, name, cores) for task, cores in machine.cores.items()]
    return tuple(actions)


def _active(observed: Observation, task: Signature) -> str:
    return next(each.alternate for each in observed.tasks if each.task == task)


@dataclass(slots=True)
class Static:
    """Applies a deployment at the first decision, then changes nothing."""

    deployment: Deployment
    name: str = "static"
    _done: bool = False

    def decide(self, observed: Observation) -> Sequence[Action]:
        if self._done:
            return ()
        self._done = True
        return deploying(self.deployment, observed)
