#!/usr/bin/python3
"""tools/wheel BUILD_DIR [OUT_DIR]: the two wheels, from a build directory, into BUILD_DIR/wheels.

farandole          the Python package with the relocatable tree inside: any Python 3, glibc >= 2.34
farandole-horovod  Horovod's names; pure Python

A wheel is a zip file with a list of its files: the standard library can write one.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Dict, Iterator, Tuple

ROOT = Path(__file__).resolve().parent.parent
GLIBC = {
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    f"ld-linux-{platform.machine().replace('_', '-')}.so.2",
    "ld-linux-aarch64.so.1",
}
# What belongs into the tree but not among the user's packages.
TREE_ONLY = ("farandole_hooks", "oneccl_bindings_for_pytorch", "torch_ccl")
SUMMARY = "Training on many processes and machines: launcher, collectives, PyTorch adapters"

Files = Dict[str, Tuple[bytes, int]]  # name in the wheel: (content, mode)


def version() -> str:
    scope: dict[str, str] = {}
    exec((ROOT / "python/farandole/version.py").read_text(), scope)
    return scope["__version__"]


def modules(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc":
            yield path


def add_package(files: Files, name: str, into: str) -> None:
    source = ROOT / "python"
    for path in modules(source / name):
        files[into + str(path.relative_to(source))] = (path.read_bytes(), 0o644)


def needs_more_than_glibc(path: Path) -> list[str]:
    text = subprocess.run(
        ["readelf", "-d", str(path)], check=True, capture_output=True, text=True
    ).stdout
    needed = [line.split("[")[1].rstrip("]\n") for line in text.splitlines() if "(NEEDED)" in line]
    return [each for each in needed if each not in GLIBC]


def add_tree(files: Files, build: Path) -> None:
    """bin/farandole, lib/libfarandole.so.0, the engines, the Python packages once more."""
    tree = "farandole/_tree/"
    library = build / "lib/libfarandole.so.0"
    for path, name, mode in (
        (build / "bin/farandole", "bin/farandole", 0o755),
        (library, "lib/libfarandole.so.0", 0o755),
    ):
        if not path.exists():
            sys.exit(f"tools/wheel: there is no {path}: run make build first")
        if more := needs_more_than_glibc(path):
            sys.exit(f"tools/wheel: {path} needs {', '.join(more)}: it would not run elsewhere")
        files[tree + name] = (path.read_bytes(), mode)
    # TensorFlow's operations are compiled where they are used.
    files[tree + "include/farandole.h"] = ((ROOT / "include/farandole.h").read_bytes(), 0o644)
    for path in sorted((build / "lib/farandole/engines").glob("*.so")):
        # An engine that needs a library of the system stays with the system.
        if not needs_more_than_glibc(path):
            files[f"{tree}lib/farandole/engines/{path.name}"] = (path.read_bytes(), 0o755)
    for name in ("farandole", "horovod", *TREE_ONLY):
        add_package(files, name, tree + "lib/farandole/python/")


def metadata(name: str, requires: list[str]) -> str:
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version()}",
        f"Summary: {SUMMARY}",
        "License: Apache-2.0",
        "Requires-Python: >=3.8",
    ]
    return "\n".join(lines + [f"Requires-Dist: {each}" for each in requires]) + "\n"


def write(
    out: Path, name: str, tag: str, files: Files, requires: list[str], commands: dict[str, str]
) -> Path:
    stem = f"{name.replace('-', '_')}-{version()}"
    info = f"{stem}.dist-info/"
    pure = "true" if tag.endswith("-any") else "false"
    scripts = "".join(f"{key} = {value}\n" for key, value in commands.items())
    files[info + "METADATA"] = (metadata(name, requires).encode(), 0o644)
    files[info + "WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: farandole\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode(),
        0o644,
    )
    files[info + "entry_points.txt"] = (f"[console_scripts]\n{scripts}".encode(), 0o644)
    files[info + "LICENSE"] = ((ROOT / "LICENSE").read_bytes(), 0o644)
    record = []
    for each, (content, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record.append(f"{each},sha256={digest},{len(content)}")
    record.append(info + "RECORD,,")
    files[info + "RECORD"] = (("\n".join(record) + "\n").encode(), 0o644)
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob(f"{name.replace('-', '_')}-[0-9]*.whl"):
        old.unlink()
    path = out / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, (content, mode) in files.items():
            entry = zipfile.ZipInfo(each)  # of 1980: the same content is the same wheel
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return path


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: tools/wheel BUILD_DIR [OUT_DIR]")
    build = Path(sys.argv[1]).resolve()
    out = Path(sys.argv[2]).resolve() if len(sys.argv) == 3 else build / "wheels"
    files: Files = {}
    add_package(files, "farandole", "")
    add_tree(files, build)
    command = "farandole.command:main"
    print(
        write(
            out,
            "farandole",
            f"py3-none-manylinux_2_34_{platform.machine()}",
            files,
            [],
            {"farandole": command, "ipexrun": command},
        )
    )
    files = {}
    add_package(files, "horovod", "")
    print(
        write(
            out,
            "farandole-horovod",
            "py3-none-any",
            files,
            [f"farandole=={version()}"],
            {"horovodrun": command},
        )
    )


main()
