"""Cycles and the longest way in a graph."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

N = TypeVar("N", bound=Hashable)

Graph = Mapping[N, Sequence[N]]


def components(graph: Graph[N]) -> Iterator[list[N]]:
    """Yield the strongly connected parts of a graph, each after those that it leads to (Tarjan)."""
    index: dict[N, int] = {}
    low: dict[N, int] = {}
    stack: list[N] = []
    inside: set[N] = set()
    for root in graph:
        if root in index:
            continue
        work: list[tuple[N, Iterator[N]]] = [(root, iter(graph.get(root, ())))]
        index[root] = low[root] = len(index)
        stack.append(root)
        inside.add(root)
        while work:
            node, following = work[-1]
            for other in following:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    inside.add(other)
                    work.append((other, iter(graph.get(other, ()))))
                    break
                if other in inside:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = _popped(stack, node)
                    inside.difference_update(part)
                    yield part


def _popped(stack: list[N], node: N) -> list[N]:
    at = stack.index(node)
    part = stack[at:]
    del stack[at:]
    return part


def cycles(graph: Graph[N]) -> Iterator[list[N]]:
    """Yield a shortest cycle through each edge that lies on one; the first node is also the last."""
    for part in components(graph):
        members = set(part)
        for node in part:
            for other in graph.get(node, ()):
                if other in members and (way := _way(graph, other, node, members)):
                    yield [node, *way]


def _way(graph: Graph[N], source: N, target: N, members: set[N]) -> list[N] | None:
    before: dict[N, N | None] = {source: None}
    queue = deque([source])
    while queue:
        node = queue.popleft()
        if node == target:
            return _back(before, node)
        for other in graph.get(node, ()):
            if other in members and other not in before:
                before[other] = node
                queue.append(other)
    return None


def _back(before: Mapping[N, N | None], node: N) -> list[N]:
    way: list[N] = []
    at: N | None = node
    while at is not None:
        way.append(at)
        at = before[at]
    return way[::-1]


def longest(graph: Graph[N]) -> int:
    """Return the number of edges of the longest way; a cycle is passed once, as a whole."""
    length: dict[N, int] = {}
    longest_of_all = 0
    for part in components(graph):
        members = set(part)
        ahead = [length[o] + 1 for n in part for o in graph.get(n, ()) if o not in members]
        here = max(ahead, default=0) + len(part) - 1
        length |= dict.fromkeys(part, here)
        longest_of_all = max(longest_of_all, here)
    return longest_of_all
