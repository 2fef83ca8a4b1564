"""Which results are of one arm."""

from collections import Counter
from collections.abc import Sequence

from mtl.records import ResultRecord


def arms_of_results(results: Sequence[ResultRecord]) -> list[str]:
    """The arm of each result, by one of its hashes: that of results with an equal ``arm_hash`` or ``chain_hash``.

    Where all seeds start from the same run, that of its own seed has a ``chain_hash`` that the others lack, and is of
    their arm all the same. What would be of two arms, with one seed twice in their union, is of the chain's.
    """
    arms = [result.arm for result in results]
    for places in _linked(results):
        members = [results[place] for place in places]
        if len({(member.seed, member.fold) for member in members}) < len(members):
            continue
        counts = Counter(arms[place] for place in places)
        shared = min(counts, key=lambda arm: (-counts[arm], arm))
        for place in places:
            arms[place] = shared
    return arms


def _linked(results: Sequence[ResultRecord]) -> list[list[int]]:
    """The places of results that share a hash, or are linked by others that do."""
    groups: list[tuple[set[str], list[int]]] = []
    for place, result in enumerate(results):
        own = {result.arm_hash, result.arm}
        linked = [group for group in groups if group[0] & own]
        names = own.union(*(others for others, _ in linked))
        members = [member for _, others in linked for member in others]
        groups = [*(group for group in groups if not group[0] & own), (names, [*members, place])]
    return [places for _, places in groups]
