"""The wheels, from a build directory: for tools/wheel, and for pip as its build backend.

A wheel is a zip file with a list of its files: the standard library can write one. Nothing is
compiled here: what pip packs (`pip wheel .`, `pip install .`) is what `make build` has left in
build/, or in DIR with --config-settings build-dir=DIR.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, Dict, Iterator, Tuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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

Files = Dict[str, Tuple[bytes, int]]  # name in the wheel: (content, mode)


class CannotMake(RuntimeError):
    """There is nothing to make a wheel of, or it would not run elsewhere."""


def projects() -> tuple[dict[str, Any], dict[str, Any]]:
    """The metadata of both wheels."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return found["project"], found["tool"]["farandole"]["horovod"]


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
            raise CannotMake(f"there is no {path}: run make build first")
        if more := needs_more_than_glibc(path):
            raise CannotMake(f"{path} needs {', '.join(more)}: it would not run elsewhere")
        files[tree + name] = (path.read_bytes(), mode)
    # TensorFlow's operations are compiled where they are used.
    files[tree + "include/farandole.h"] = ((ROOT / "include/farandole.h").read_bytes(), 0o644)
    for path in sorted((build / "lib/farandole/engines").glob("*.so")):
        # An engine that needs a library of the system stays with the system.
        if not needs_more_than_glibc(path):
            files[f"{tree}lib/farandole/engines/{path.name}"] = (path.read_bytes(), 0o755)
    for name in ("farandole", "horovod", *TREE_ONLY):
        add_package(files, name, tree + "lib/farandole/python/")


def metadata(project: dict[str, Any]) -> str:
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {version()}",
        f"Summary: {project['description']}",
        f"License: {project['license']['text']}",
        f"Requires-Python: {project['requires-python']}",
    ]
    lines += [f"Requires-Dist: {each}" for each in project.get("dependencies", ())]
    return "\n".join(lines) + "\n"


def write(out: Path, project: dict[str, Any], tag: str, files: Files) -> Path:
    name = project["name"].replace("-", "_")
    stem = f"{name}-{version()}"
    info = f"{stem}.dist-info/"
    pure = "true" if tag.endswith("-any") else "false"
    scripts = "".join(f"{key} = {value}\n" for key, value in project["scripts"].items())
    files[info + "METADATA"] = (metadata(project).encode(), 0o644)
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
    for old in out.glob(f"{name}-[0-9]*.whl"):
        old.unlink()
    path = out / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, (content, mode) in files.items():
            entry = zipfile.ZipInfo(each)  # of 1980: the same content is the same wheel
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return path


def make(out: Path, build: Path) -> Path:
    """farandole: the package with the relocatable tree inside; any Python 3, glibc >= 2.34."""
    project, _ = projects()
    files: Files = {}
    add_package(files, "farandole", "")
    add_tree(files, build)
    return write(out, project, f"py3-none-manylinux_2_34_{platform.machine()}", files)


def make_horovod(out: Path) -> Path:
    """farandole-horovod: Horovod's names; pure Python."""
    _, project = projects()
    files: Files = {}
    add_package(files, "horovod", "")
    project["dependencies"] = [f"farandole=={version()}"]
    return write(out, project, "py3-none-any", files)


# ---- What pip calls (PEP 517).


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    build = (config_settings or {}).get("build-dir", ROOT / "build")
    return make(Path(wheel_directory), Path(build).resolve()).name


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    raise CannotMake("there is no sdist of Farandole: CMake builds it, and pip does not call CMake")
