#!/usr/bin/env python3
"""layers.py SOURCE_DIR: compares includes with "Who may include whom" of docs/architecture.md.

A room is a folder of src/, or bench/, one level deep (`collective/shm`, `launch/remote`, …);
`collective` alone means the files that lie in that folder itself. A line of the table names a room
and the rooms it may include. The test fails if a room includes one that its line does not name, if
a line names a room that is not included or does not exist, if a room has no line, and if the lines
together have a circle. Exceptions stand in a second table, with the way to get rid of each; they
may disappear, but a new one has to be written there. `--print` shows the graph as it is.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

Graph = dict[str, set[str]]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
ROW = re.compile(r"^\| `([^`]+)` \|([^|]*)\|", re.MULTILINE)


def room_of(name: str) -> str:
    """Of a file as it is included: below src/, or "bench/…"."""
    return "/".join(name.split("/")[:-1][:2])


def includes(root: Path) -> Graph:
    src = root / "src"
    files = {str(file.relative_to(src)): file for file in src.rglob("*")}
    files |= {str(file.relative_to(root)): file for file in (root / "bench").rglob("*")}
    graph: Graph = defaultdict(set)
    for name, file in sorted(files.items()):
        if file.suffix not in {".h", ".cc", ".inc"}:
            continue
        room = room_of(name)
        graph[room]
        for target in INCLUDE.findall(file.read_text(encoding="utf-8")):
            if target not in files:
                continue  # a public header of include/, or one beside the file
            if (other := room_of(target)) != room:
                graph[room].add(other)
    return dict(graph)


def section(page: str, title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    if not found:
        sys.exit(f'docs/architecture.md has no section "{title}"')
    return found.group(1)


def table(text: str) -> Graph:
    graph: Graph = {}
    for room, others in ROW.findall(text):
        if room in graph:
            sys.exit(f"docs/architecture.md names {room} twice")
        graph[room] = set(re.findall(r"`([^`]+)`", others))
    return graph


def circle(graph: Graph) -> list[str]:
    """A way from a room back to itself, or nothing."""
    done: set[str] = set()

    def visit(room: str, way: list[str]) -> list[str]:
        if room in way:
            return [*way[way.index(room) :], room]
        if room in done:
            return []
        for other in sorted(graph.get(room, ())):
            if found := visit(other, [*way, room]):
                return found
        done.add(room)
        return []

    for room in sorted(graph):
        if found := visit(room, []):
            return found
    return []


def complaints(real: Graph, allowed: Graph, excepted: Graph) -> list[str]:
    found = []
    for room, others in sorted(real.items()):
        if room not in allowed:
            found.append(f"{room} has no line in the table")
            continue
        for other in sorted(others - allowed[room] - excepted.get(room, set())):
            found.append(f"{room} includes {other}, which its line does not name")
    for name, graph in (("table", allowed), ("table of exceptions", excepted)):
        for room, others in sorted(graph.items()):
            if room not in real:
                found.append(f"the {name} names {room}, which is no folder of src/ or bench/")
                continue
            for other in sorted(others - real[room]):
                found.append(f"the {name} lets {room} include {other}, which it does not: remove it")
    if way := circle(allowed):
        found.append("the table has a circle: " + " -> ".join(way))
    return found


def main() -> int:
    root = Path(sys.argv[-1])
    real = includes(root)
    if "--print" in sys.argv:
        for room, others in sorted(real.items()):
            print(f"| `{room}` | " + " ".join(f"`{other}`" for other in sorted(others)) + " |")
        return 0
    page = (root / "docs/architecture.md").read_text(encoding="utf-8")
    found = complaints(real, table(section(page, "Who may include whom")), table(section(page, "Arrows that still point up")))
    for line in found:
        print(line)
    print(f"{len(real)} folders, {sum(map(len, real.values()))} arrows, {len(found)} complaints")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
