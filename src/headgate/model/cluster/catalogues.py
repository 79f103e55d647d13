"""Built-in clouds: those of the papers, and a current one.

Prices are those on demand, in US dollars, of the US East region, as they were published for the year in the name; the
papers' come from their authors' own files. Power is relative to a core of m1.small, the papers' reference core.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from headgate.errors import unknown
from headgate.model.cluster.vm_class import HOURLY, PER_SECOND, Cloud, VmClass

__all__ = ["CATALOGUES", "catalogue"]

_BOOT_2013_S = 97.0
"""Mean start of a Linux machine on EC2, as measured by Mao and Humphrey (IEEE CLOUD 2012)."""


def _vm(name: str, cores: int, power: float, mbit: float, price: str, boot_s: float, shut_s: float = 0.0) -> VmClass:
    return VmClass(name, cores, power, mbit, Decimal(price), boot_s, shut_s)


_EC2_2013 = Cloud(
    "ec2-2013",
    (
        # Bandwidths are ours: the papers do not print theirs, and the provider said low, moderate, moderate and high.
        _vm("m1.small", 1, 1.0, 250, "0.060", _BOOT_2013_S),
        _vm("m1.medium", 1, 2.0, 500, "0.120", _BOOT_2013_S),
        _vm("m1.large", 2, 2.0, 500, "0.240", _BOOT_2013_S),
        _vm("m1.xlarge", 4, 2.0, 1000, "0.480", _BOOT_2013_S),
    ),
    HOURLY,
)

_FLOE_SIM = Cloud(
    "floe-sim",
    (
        # The file of DYN's authors gives MIPS (m1.small has 1,000) and a bandwidth without a unit, read as Mbit/s.
        _vm("m1.small", 1, 1.0, 20, "0.06", _BOOT_2013_S),
        _vm("m1.medium", 1, 2.0, 40, "0.12", _BOOT_2013_S),
        _vm("m1.large", 2, 2.0, 80, "0.24", _BOOT_2013_S),
        _vm("m1.xlarge", 4, 2.0, 80, "0.48", _BOOT_2013_S),
        _vm("m3.xlarge", 4, 3.25, 80, "0.50", _BOOT_2013_S),
        _vm("m3.2xlarge", 8, 3.25, 100, "1.00", _BOOT_2013_S),
    ),
    HOURLY,
)

_EC2_2024 = Cloud(
    "ec2-2024",
    (
        # A vCPU is half a core of today; eight times an m1.small's core is our estimate, and only ratios count.
        _vm("m7i.large", 2, 8.0, 780, "0.1008", 40, 5),
        _vm("m7i.xlarge", 4, 8.0, 1560, "0.2016", 40, 5),
        _vm("m7i.2xlarge", 8, 8.0, 3120, "0.4032", 40, 5),
        _vm("m7i.4xlarge", 16, 8.0, 6250, "0.8064", 40, 5),
        _vm("m7i.8xlarge", 32, 8.0, 12500, "1.6128", 40, 5),
    ),
    PER_SECOND,
    latency_s=0.0002,
)

_P_DEPLOYER = Cloud(
    "p-deployer",
    # The one class of P-DEPLOY's private cloud (2 VCPU, 4 GB). It has no price there; ours is that of m1.large's cores.
    (VmClass("m1.medium", 2, 1.0, 1000, Decimal("0.120"), 40.0, memory_bytes=4 * 2**30),),
    PER_SECOND,
)

CATALOGUES: Mapping[str, Cloud] = {cloud.name: cloud for cloud in (_EC2_2013, _FLOE_SIM, _EC2_2024, _P_DEPLOYER)}


def catalogue(name: str) -> Cloud:
    """The cloud of that name.

    >>> [each.name for each in catalogue("ec2-2013").classes]
    ['m1.small', 'm1.medium', 'm1.large', 'm1.xlarge']
    """
    if name not in CATALOGUES:
        raise unknown("UNKNOWN_CLOUD", f"unknown cloud {name[:60]!r}", name, CATALOGUES)
    return CATALOGUES[name]
