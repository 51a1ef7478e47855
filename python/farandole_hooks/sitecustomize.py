"""Runs when Python starts under `farandole run`, which puts this folder first into PYTHONPATH.

Farandole's packages become importable, behind everything the user has; torch.distributed gets the
backend "farandole" when it is imported; and the sitecustomize that would have run without us runs.
Nothing here may fail a program that does not use Farandole.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_the_next():
    """The user's or the system's own sitecustomize."""
    path = [each for each in sys.path if os.path.abspath(each or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


class _AfterImport(importlib.abc.MetaPathFinder):
    """Registers the backend right after torch.distributed has been imported."""

    name = "torch.distributed"

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            try:
                from farandole.c10d.registration import register

                register()
            except Exception as error:
                print(
                    "farandole: the backend of torch.distributed was not registered: %s: %s"
                    % (type(error).__name__, error),
                    file=sys.stderr,
                )

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _install():
    packages = os.path.dirname(_HERE)
    if packages not in sys.path:
        sys.path.append(packages)
    # The folder has done its work; it stays in PYTHONPATH for the processes that this one starts.
    sys.path[:] = [each for each in sys.path if os.path.abspath(each or ".") != _HERE]
    if "torch.distributed" not in sys.modules:
        sys.meta_path.insert(0, _AfterImport())


_install()
_run_the_next()
