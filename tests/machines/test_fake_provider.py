"""The provider that other tests use keeps to the contract of providers."""

from __future__ import annotations

from pathlib import Path

from headgate.machines.provider import Provider
from tests.machines.fake_provider import FakeProvider
from tests.machines.provider_contract import check_contract


def test_it_keeps_to_the_contract(tmp_path: Path) -> None:
    now = [0.0]

    def settle(provider: Provider) -> None:
        now[0] += 60.0
        provider.list()
        now[0] += 60.0

    check_contract(lambda: FakeProvider(tmp_path, lambda: now[0]), "small", settle)
