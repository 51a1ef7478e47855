"""farandole.run(fn, …): a function on several ranks, from a script, a shell or a notebook.

The function travels through the launcher's standard input to the first rank and from there, inside
the job, to the others; the values come back as marked lines of the ranks' output. No port, no file,
and the ranks may be on other machines. What they print is shown while they run.
"""

from __future__ import annotations

import os
import pickle
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from typing import Any, Callable, Sequence

from . import errors
from ._library import find_library

_MARK = "farandole-value:"
_LAST_LINES = 12


class RunFailed(errors.OperationFailed):
    """The job ended with an error; `code` is the launcher's exit code."""


def run(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    np: int | None = None,
    hosts: str | None = None,
    *,
    options: Sequence[str] = (),
    executable: str | None = None,
    env: dict[str, str] | None = None,
) -> list[Any]:
    """Every rank's fn(*args, **kwargs), in the order of ranks.

    np, hosts: as `farandole run` has them. options: more of its options. executable: the
    interpreter (this one). env: more variables for the ranks. A failure of any rank is a RunFailed.
    """
    if "FARANDOLE_VALUE_MARK" in os.environ:
        raise errors.InvalidArgument(
            "farandole.run() was called again while a rank was reading the script: put the call "
            "under if __name__ == '__main__':"
        )
    payload = _pack(fn, tuple(args), dict(kwargs or {}))
    mark = _MARK + secrets.token_hex(8) + ":"
    words = [
        _command(),
        "run",
        *(["-np", str(np)] if np else []),
        *(["-H", hosts] if hosts else []),
        *options,
        "--env",
        "FARANDOLE_VALUE_MARK=" + mark,
        executable or sys.executable,
        "-m",
        "farandole.run_rank",
    ]
    environment = {
        key: value
        for key, value in {**os.environ, **(env or {})}.items()
        if key not in ("FARANDOLE_RANK", "FARANDOLE_AGENT", "FARANDOLE_SECRET")
    }
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    reader = _Reader(process, mark)
    try:
        _feed(process, payload)
        code = process.wait()
    except BaseException:  # Ctrl-C: the launcher ends the ranks
        process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
        raise
    finally:
        reader.join()
    if code != 0:
        raise _failed(
            f"the job failed with exit code {code}; it ended with:\n" + "".join(reader.last), code
        )
    return reader.values()


def _failed(text: str, code: int) -> RunFailed:
    failure = RunFailed("farandole.run: " + text)
    failure.code = code
    return failure


def _feed(process: subprocess.Popen[str], payload: bytes) -> None:
    stdin = process.stdin
    assert stdin is not None
    try:
        stdin.buffer.write(payload)  # type: ignore[attr-defined]
        stdin.close()
    except BrokenPipeError:
        pass  # the launcher's own message is shown


def _command() -> str:
    """The launcher that belongs to this package's library."""
    try:
        tree = os.path.dirname(os.path.dirname(os.path.abspath(find_library())))
        beside = os.path.join(tree, "bin", "farandole")
        if os.access(beside, os.X_OK):
            return beside
    except errors.LibraryNotFound:
        pass
    found = shutil.which("farandole")
    if found is None:
        raise errors.LibraryNotFound(
            "the command `farandole` was found neither beside the library nor on PATH"
        )
    return found


def _pack(fn: Callable[..., Any], args: Any, kwargs: Any) -> bytes:
    """fn and its arguments, and what the ranks need to unpickle them."""
    main = sys.modules.get("__main__")
    script = None
    try:
        import cloudpickle

        call = cloudpickle.dumps((fn, args, kwargs))
    except ImportError:
        if getattr(fn, "__module__", None) == "__main__":
            path = getattr(main, "__file__", None)
            if path is None or not os.path.isfile(path):
                raise errors.InvalidArgument(
                    f"{_name(fn)} was defined interactively: install cloudpickle, or move it "
                    "into a file that can be imported"
                ) from None
            with open(path, encoding="utf-8") as file:
                script = (os.path.abspath(path), file.read())
        try:
            call = pickle.dumps((fn, args, kwargs))
        except Exception as error:  # pickle raises anything
            raise errors.InvalidArgument(
                f"{_name(fn)} or its arguments cannot be sent to the ranks ({error}): define it "
                "with def at the top of a module, or install cloudpickle for lambdas and such"
            ) from None
    return pickle.dumps(
        {"path": [each or os.getcwd() for each in sys.path], "script": script, "call": call}
    )


def _name(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__qualname__", repr(fn))


class _Reader:
    """Shows the launcher's output as it comes, and takes the marked lines out of it."""

    def __init__(self, process: subprocess.Popen[str], mark: str) -> None:
        self._mark = mark
        self._pieces: dict[int, list[str]] = {}
        self._whole: dict[int, bool] = {}
        self.last: list[str] = []
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._read, args=pair, daemon=True)
            for pair in ((process.stdout, sys.stdout), (process.stderr, sys.stderr))
        ]
        for thread in self._threads:
            thread.start()

    def _read(self, source: Any, target: Any) -> None:
        for line in source:
            at = line.find(self._mark)
            if at >= 0:
                self._take(line[at + len(self._mark) :].strip())
                continue
            with self._lock:
                self.last = ([*self.last, line])[-_LAST_LINES:]
            target.write(line)
            target.flush()

    def _take(self, text: str) -> None:
        """RANK:PIECE, and RANK: at the end."""
        rank, _, piece = text.partition(":")
        if piece:
            self._pieces.setdefault(int(rank), []).append(piece)
        else:
            self._whole[int(rank)] = True

    def join(self) -> None:
        for thread in self._threads:
            thread.join(10)

    def values(self) -> list[Any]:
        import base64

        ranks = sorted(self._whole)
        if not ranks or ranks != list(range(len(ranks))):
            raise _failed(f"only the ranks {ranks} returned a value", 0)
        return [
            pickle.loads(base64.b64decode("".join(self._pieces.get(rank, [])))) for rank in ranks
        ]
