"""farandole._abi says the same as include/farandole.h: constants, structs, functions.

The header is read twice: by the small parser below, for names and types, and by the C compiler, for
values, sizes and offsets.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import tempfile
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_double,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Any

import pytest

import farandole
from conftest import ROOT
from farandole import _abi, _library, errors
from farandole.dtypes import DType, ReduceOp

HEADER = (ROOT / "include" / "farandole.h").read_text()
PREFIX = "FARANDOLE_"

PLAIN = {
    "int32_t": c_int32,
    "uint32_t": c_uint32,
    "int64_t": c_int64,
    "uint64_t": c_uint64,
    "size_t": c_size_t,
    "double": c_double,
    "char*": c_char_p,
    "void*": c_void_p,
}


class Header:
    """What farandole.h declares, by regular expressions that know how it is written."""

    def __init__(self, text: str) -> None:
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
        self.defines = re.findall(r"^#define FARANDOLE_(\w+) +\(?-?\d+\)?$", text, re.MULTILINE)
        self.enums = {
            name.strip(): re.findall(r"FARANDOLE_(\w+)", body)
            for name, body in re.findall(r"\benum\b([^{};]*)\{([^}]*)\}", text)
        }
        self.structs = {
            name: [_declaration(each) for each in body.split(";") if each.strip()]
            for name, body in re.findall(r"typedef struct (\w+) \{([^}]*)\} \1;", text)
        }
        self.opaque = re.findall(r"typedef struct (\w+) \1;", text)
        self.callbacks = re.findall(r"typedef [\w* ]+ ?\(\*(\w+)\)\(", text)
        aliases = re.findall(r"typedef (u?int\d+_t) (\w+);", text)
        self.aliases = {name: kind for kind, name in aliases}
        self.functions = {}
        for declared, arguments in re.findall(r"FARANDOLE_API ([^;(]+)\(([^;]*)\);", text):
            name, result = _declaration(declared)
            each = [] if arguments.strip() == "void" else arguments.split(",")
            self.functions[name] = (result, [_declaration(one)[1] for one in each])
        self.text = text

    def type_of(self, text: str) -> Any:
        """As ctypes has it."""
        structs = {kind.__doc__: kind for kind in structures()}
        if text in self.aliases:
            text = self.aliases[text]
        if text in PLAIN:
            return PLAIN[text]
        if text in self.enums:
            return c_int32
        if text in self.callbacks or text[:-1] in self.opaque:
            return c_void_p
        if text in structs:
            return structs[text]
        assert text.endswith("*"), f"the test does not know the type {text}"
        return POINTER(self.type_of(text[:-1]))

    def measured(self) -> dict[str, int]:
        """(sizeof, {field: (offset, size)}) of structs, values of constants, from the compiler."""
        names = self.defines + [each for body in self.enums.values() for each in body]
        lines = [f'printf("{name} %lld\\n", (long long){PREFIX}{name});' for name in names]
        for struct, fields in self.structs.items():
            lines.append(f'printf("{struct} %zu\\n", sizeof({struct}));')
            for field, _ in fields:
                lines.append(
                    f'printf("{struct}.{field} %zu\\n", offsetof({struct}, {field}) * 1000 +'
                    f" sizeof((({struct}*)0)->{field}));"
                )
        program = "#include <stdio.h>\n" + self.text + "int main(void) {\n" + "\n".join(lines) + "}"
        return compiled(program)


def _declaration(text: str) -> tuple[str, str]:
    """(name, type) of `const int64_t* shape`; the type without const."""
    found = re.fullmatch(r"(.*?[\s*])(\w+)", " ".join(text.split()))
    assert found, f"the test cannot read the declaration {text!r}"
    kind, name = found.groups()
    return name, re.sub(r"\bconst\b|\s", "", kind)


def compiled(program: str) -> dict[str, int]:
    """The numbers that a C program prints."""
    with tempfile.TemporaryDirectory() as folder:
        source, path = Path(folder, "abi.c"), Path(folder, "abi")
        source.write_text(program)
        words = [os.environ.get("CC", "cc"), "-std=c11", "-w", str(source), "-o", str(path)]
        made = subprocess.run(words, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        done = subprocess.run([str(path)], capture_output=True, text=True, check=True)
    return {name: int(value) for name, value in map(str.split, done.stdout.splitlines())}


def structures() -> list[Any]:
    """Their docstrings are their names in the header."""
    kinds = [each for each in vars(_abi).values() if isinstance(each, type)]
    return [each for each in kinds if issubclass(each, Structure) and each is not Structure]


def constants() -> dict[str, int]:
    """Python's, by their names in the header."""
    plain = {name: value for name, value in vars(_abi).items() if isinstance(value, int)}
    return {**plain, **{each.name: int(each) for kind in (DType, ReduceOp) for each in kind}}


def differences(text: str) -> list[str]:
    """What the header and Python do not say alike."""
    header = Header(text)
    measured = header.measured()
    found = []

    def compare(what: str, theirs: object, ours: object) -> None:
        if theirs != ours:
            found.append(f"{what}: farandole.h has {theirs}, Python {ours}")

    names = header.defines + [each for body in header.enums.values() for each in body]
    ours = constants()
    for name in sorted({*names, *ours}):
        compare(f"constant {name}", measured.get(name), ours.get(name))

    kinds = {kind.__doc__: kind for kind in structures()}
    compare("structs", sorted(header.structs), sorted(kinds))
    for name in sorted(header.structs.keys() & kinds.keys()):
        kind, fields = kinds[name], header.structs[name]
        compare(f"size of {name}", measured[name], ctypes.sizeof(kind))
        compare(f"fields of {name}", [each for each, _ in fields], [f[0] for f in kind._fields_])
        own = dict(kind._fields_)
        for field, type_text in fields:
            if field in own:
                compare(f"type of {name}.{field}", header.type_of(type_text), own[field])
                place = getattr(kind, field)
                where = divmod(measured[f"{name}.{field}"], 1000)
                compare(f"place of {name}.{field}", where, (place.offset, place.size))

    table: dict[str, Any] = {"farandole_" + name: each for name, each in _abi.FUNCTIONS.items()}
    compare("functions", sorted(header.functions), sorted(table))
    for name in sorted(header.functions.keys() & table.keys()):
        result, arguments = header.functions[name]
        theirs = (header.type_of(result), [header.type_of(each) for each in arguments])
        compare(name, theirs, (table[name][0], list(table[name][1])))
    return found


def test_python_and_the_header_say_the_same():
    assert differences(HEADER) == []


def test_everything_in_the_header_was_seen():
    header = Header(HEADER)
    assert len(header.functions) == HEADER.count("FARANDOLE_API ") - 1  # one is its definition
    assert len(header.structs) == len(re.findall(r"typedef struct \w+ \{", HEADER))
    assert len(header.enums) == len(re.findall(r"\benum\b[^;{]*\{", header.text))
    known = {"H", "API", "INIT_OPTIONS_INIT", "REQUEST_INIT"}
    assert known == set(re.findall(r"#define FARANDOLE_(\w+)", HEADER)) - set(header.defines)


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("uint64_t queue_tag;", "uint64_t queue_tag; int32_t more;", "fields of farandole_request"),
        ("uint64_t plan_hits;", "", "fields of farandole_counters"),
        ("int32_t dtype; int32_t op;", "int32_t op; int32_t dtype;", "fields of farandole_request"),
        ("double prescale;", "int64_t prescale;", "type of farandole_request.prescale"),
        ("size_t bytes; const", "uint32_t bytes; const", "type of farandole_result.bytes"),
        ("int64_t output_bytes;", "int32_t output_bytes;", "type of farandole_request.output_b"),
        ("int32_t last_joined;", "int64_t last_joined;", "place of farandole_result.source"),
        ("FARANDOLE_TIMEOUT = 5", "FARANDOLE_TIMEOUT = 15", "constant TIMEOUT"),
        ("FARANDOLE_BOOL = 10", "FARANDOLE_BOOL = 20", "constant BOOL"),
        ("FARANDOLE_ADASUM = 8", "FARANDOLE_ADASUM = 8, FARANDOLE_XOR = 9", "constant XOR"),
        ("FARANDOLE_ABI_VERSION 1", "FARANDOLE_ABI_VERSION 2", "constant ABI_VERSION"),
        ("farandole_handle handle, int64_t timeout_ms", "farandole_handle handle", "_wait:"),
        ("size_t capacity);", "int32_t capacity);", "farandole_queue_pop:"),
        ("int32_t farandole_rank(void)", "int64_t farandole_rank(void)", "farandole_rank:"),
        ("farandole_free(void* memory);", "farandole_give(void* memory);", "functions:"),
        ("typedef int32_t farandole_set;", "typedef int64_t farandole_set;", "_remove_set:"),
        (
            "typedef uint64_t farandole_handle;",
            "typedef struct farandole_new { int32_t a; } farandole_new;"
            " typedef uint64_t farandole_handle;",
            "structs:",
        ),
    ],
)
def test_a_change_of_the_header_is_noticed(old: str, new: str, said: str) -> None:
    pattern = r"\s+".join(map(re.escape, old.split()))  # comments and lines may lie between
    text, count = re.subn(pattern, new, Header(HEADER).text)
    assert count == 1, f"{old!r} is {count} times in the header"
    found = differences(text)
    assert any(said in each for each in found), found


class Swapped(Structure):
    """farandole_completion"""

    _fields_ = [
        ("tag", c_uint64),
        ("handle", c_uint64),
        ("code", c_int32),
        ("reserved", c_uint32),
    ]


@pytest.mark.parametrize(
    "name, value, said",
    [
        ("Completion", Swapped, "fields of farandole_completion"),
        ("FLAG_ORDERED", 3, "constant FLAG_ORDERED"),
        ("FLAG_NEW", 8, "constant FLAG_NEW: farandole.h has None"),
        ("FUNCTIONS", {**_abi.FUNCTIONS, "rank": (c_int64, [])}, "farandole_rank:"),
        ("FUNCTIONS", {**_abi.FUNCTIONS, "extra": (c_int32, [])}, "functions:"),
    ],
)
def test_a_change_of_python_is_noticed(
    monkeypatch: Any, name: str, value: object, said: str
) -> None:
    monkeypatch.setattr(_abi, name, value, raising=False)
    found = differences(HEADER)
    assert any(said in each for each in found), found


def test_the_type_checker_knows_the_same_functions():
    assert set(_library.Library.__annotations__) - {"path"} == set(_abi.FUNCTIONS)


def test_every_code_has_an_exception():
    codes = Header(HEADER).enums["farandole_code"]
    values = {getattr(_abi, name) for name in codes}
    # OK is none, and a wait that was interrupted goes on.
    assert set(errors.BY_CODE) == values - {_abi.OK, _abi.INTERRUPTED}


def test_the_library_and_the_package_are_of_one_version():
    assert _library.library_version() == farandole.__version__
