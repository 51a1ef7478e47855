#!/usr/bin/env python3
"""namespaces.py SOURCE_DIR: the namespaces of src/ are its folders (docs/architecture.md, "Namespaces").

What a file of src/transport declares is in farandole::transport; src/base is farandole itself. A named namespace inside that
(`detail`, `wire`) belongs to the folder, and may not have the name of a folder below it. A block that only declares
classes of another folder, or of another library (CLI::App), is in their namespace. `using namespace` is for literals of the
standard library, and no file includes the public C++ headers, whose names could otherwise meet those of base.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

HIDDEN = re.compile(
    r'R"(?P<mark>[^()\\ ]{0,16})\(.*?\)(?P=mark)"|//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|(?<!\w)\'(?:[^\'\\\n]|\\.)+\'',
    re.DOTALL,
)
HEAD = re.compile(r"\bnamespace\b\s*([\w:\s]*?)\s*\{")
FORWARD = re.compile(r"\s*(?:template\s*<[^;{}]*>\s*)?(?:class|struct|enum)\b[^;{}()]*;")
INCLUDE = re.compile(r'^\s*#\s*include\s+["<](farandole/[^">]+)[">]', re.MULTILINE)
DIRECTIVE = re.compile(r"\busing\s+namespace\s+([\w:]+)")


@dataclass
class Block:
    name: str  # of all named namespaces around it, too
    begin: int
    end: int


def without_text(source: str) -> str:
    """Comments and literals as blanks, so that braces and words are code."""
    return HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), source)


def blocks(code: str) -> list[Block]:
    found: list[Block] = []
    heads = {match.end() - 1: match for match in HEAD.finditer(code)}
    open_braces: list[Block | None] = []
    for brace in re.finditer(r"[{}]", code):
        if brace.group(0) == "{":
            block = None
            if head := heads.get(brace.start()):
                around = [outer.name for outer in open_braces if outer and outer.name][-1:]
                own = re.sub(r"\s", "", head.group(1))
                block = Block("::".join([*around, own] if own else around), brace.end(), len(code))
                if own:
                    found.append(block)
            open_braces.append(block)
        elif open_braces and (block := open_braces.pop()):
            block.end = brace.start()
    return found


def namespace_of(folder: Path) -> str:
    return "::".join(["farandole", *(part for part in folder.parts if folder.parts != ("base",))])


def complaints(src: Path) -> tuple[int, list[str]]:
    folders = {namespace_of(path.relative_to(src)) for path in src.rglob("*") if path.is_dir()}
    files, found = 0, []
    for file in sorted(src.rglob("*")):
        if file.suffix not in {".h", ".cc", ".inc"}:
            continue
        files += 1
        place = file.relative_to(src.parent)
        source = file.read_text(encoding="utf-8")
        code = without_text(source)
        home = namespace_of(file.parent.relative_to(src))

        def line(offset: int, source: str = source) -> int:
            return source.count("\n", 0, offset) + 1

        for block in blocks(code):
            if block.name == home or block.name.split("::")[0] == "std":
                continue
            if block.name.startswith(home + "::") and block.name not in folders:
                continue
            elsewhere = block.name in folders or block.name.split("::")[0] != "farandole"
            if elsewhere and not FORWARD.sub("", code[block.begin : block.end]).strip():
                continue
            found.append(f"{place}:{line(block.begin)}: namespace {block.name} in the folder of {home}")
        for use in DIRECTIVE.finditer(code):
            if not re.fullmatch(r"std::(\w+::)*\w*literals", use.group(1)):
                found.append(f"{place}:{line(use.start())}: using namespace {use.group(1)}")
        for include in INCLUDE.finditer(source):
            found.append(f"{place}:{line(include.start(1))}: includes {include.group(1)}, a header for users")
    return files, found


def main() -> int:
    files, found = complaints(Path(sys.argv[1]) / "src")
    for text in found:
        print(text)
    print(f"{files} files, {len(found)} complaints")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
