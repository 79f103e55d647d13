"""The cheapest machines for given instances: variable-sized bin packing of one-core items."""

from __future__ import annotations

from math import inf

from headgate.model.cluster.vm_class import Cloud

__all__ = ["Bin", "cheapest_bins"]

Bin = tuple[int, int, int]
"""A class's place, its cores, and how many machines."""


def cheapest_bins(cloud: Cloud, instances: int, core_power: float) -> list[Bin]:
    """The cheapest machines with the given number of cores of a minimum power; large ones first.

    Iterative repacking ends here for things of one size: all but the last few instances sit on full machines of the
    class that is cheapest by the core, and what is left is packed best by trying every class for it.

    >>> from headgate.model.cluster.catalogues import catalogue
    >>> [
    ...     (catalogue("ec2-2013").classes[kind].name, count)
    ...     for kind, _, count in cheapest_bins(catalogue("ec2-2013"), 7, 2.0)
    ... ]
    [('m1.xlarge', 1), ('m1.large', 1), ('m1.medium', 1)]

    Reference: Kang and Park (2003), Algorithms for the variable sized bin packing problem.
    """
    usable = [
        (place, each.cores, float(each.price_per_h))
        for place, each in enumerate(cloud.classes)
        if each.core_power >= core_power - 1e-12
    ]
    if instances <= 0 or not usable:
        return []
    # Of classes that cost the same by the core, the largest: fewer machines, and neighbours on one of them.
    by_core = min(usable, key=lambda each: (round(each[2] / each[1], 12), -each[1]))
    largest = max(cores for _, cores, _ in usable)
    # A remainder that small machines might hold better than the best by the core does.
    whole = max((instances - 2 * largest) // by_core[1], 0)
    rest = instances - whole * by_core[1]
    best: list[tuple[float, int, int]] = [(0.0, 0, -1)]
    for left in range(1, rest + 1):
        options = []
        for place, cores, price in usable:
            before = best[max(left - cores, 0)]
            options.append((round(before[0] + price, 9), before[1] + 1, place))
        best.append(min(options, default=(inf, 0, -1)))
    counts = {by_core[0]: whole} if whole else {}
    while rest > 0:
        place = best[rest][2]
        counts[place] = counts.get(place, 0) + 1
        rest -= cloud.classes[place].cores
    bins = [(place, cloud.classes[place].cores, count) for place, count in counts.items()]
    return sorted(bins, key=lambda each: (-each[1], each[0]))
