"""DistributedOptimizer: the user's optimizer, with the gradients (Adasum: steps) of all ranks."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any, Callable, Iterable, Iterator, Sequence, Tuple

import torch

from .. import core
from ..errors import InvalidArgument
from ..process_sets import ProcessSet, global_process_set
from . import mpi_ops
from .compression import Compression
from .mpi_ops import Adasum, Average, Sum
from .reducer import Reducer

Named = Iterable[Tuple[str, torch.Tensor]]


def _parameters(param_groups: Sequence[dict[str, Any]]) -> list[torch.Tensor]:
    return [parameter for group in param_groups for parameter in group["params"]]


def name_parameters(
    param_groups: Sequence[dict[str, Any]], named_parameters: Named | None
) -> dict[torch.Tensor, str]:
    """A name for each of the optimizer's parameters, after checks of what the user gave."""
    if named_parameters is None:
        return {
            parameter: f"parameter.{i}.{j}"
            for i, group in enumerate(param_groups)
            for j, parameter in enumerate(group["params"])
        }
    pairs = list(named_parameters)
    if any(
        not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], str)
        for pair in pairs
    ):
        raise ValueError(
            "named_parameters must be (name, parameter) pairs: pass model.named_parameters()"
        )
    seen: dict[str, torch.Tensor] = {}
    twice = set()
    for name, parameter in pairs:
        if name in seen and seen[name] is not parameter:
            twice.add(name)
        seen[name] = parameter
    if twice:
        raise ValueError(
            "names in named_parameters must be different; these are there twice: "
            + ", ".join(sorted(twice))
        )
    names: dict[torch.Tensor, str] = {}
    for name, parameter in pairs:
        names.setdefault(parameter, name)
    unnamed = [each for each in _parameters(param_groups) if each not in names]
    if unnamed:
        shapes = ", ".join(str(tuple(each.shape)) for each in unnamed[:4])
        raise ValueError(
            f"{len(unnamed)} of the optimizer's parameters are not in named_parameters (of shape "
            f"{shapes}{', …' if len(unnamed) > 4 else ''}): pass the named_parameters() of "
            "everything that is optimized"
        )
    return names


def _as_groups(
    groups: int | Sequence[Sequence[torch.Tensor]] | None,
    parameters: Sequence[torch.Tensor],
) -> list[list[torch.Tensor]]:
    """`groups` as lists of parameters; a number is that of the groups to make."""
    if groups is None:
        return []
    if isinstance(groups, int):
        if groups < 0:
            raise ValueError("groups must not be negative")
        if groups == 0 or not parameters:
            return []
        count = min(groups, len(parameters))
        share, more = divmod(len(parameters), count)
        cut = []
        start = 0
        for i in range(count):
            end = start + share + (1 if i < more else 0)
            cut.append(list(parameters[start:end]))
            start = end
        return cut
    if not isinstance(groups, (list, tuple)) or not all(
        isinstance(group, (list, tuple)) for group in groups
    ):
        raise ValueError("groups must be a number, or a list of lists of parameters")
    seen = set()
    known = {id(parameter) for parameter in parameters}
    for group in groups:
        for parameter in group:
            if not isinstance(parameter, torch.Tensor):
                raise ValueError("groups must be a number, or a list of lists of parameters")
            if id(parameter) in seen:
                raise ValueError("a parameter is in two groups")
            if id(parameter) not in known:
                raise ValueError("groups names a parameter that the optimizer does not have")
            seen.add(id(parameter))
    return [list(group) for group in groups]


class GradientsInFlight(InvalidArgument, AssertionError):
    """zero_grad() between backward() and step()."""


class _Distributed:
    """Put before the user's class: methods of every distributed optimizer."""

    _parameter_names: dict[torch.Tensor, str]
    _should_synchronize: bool

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """step() inside it takes the gradients as they are: synchronize() has been called."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True


class _GradientOptimizer(_Distributed):
    """Reduces gradients."""

    _reducer: Reducer

    def synchronize(self) -> None:
        """Waits until p.grad of every parameter is the reduction over all ranks."""
        self._take_in_new_parameters()
        self._reducer.synchronize()

    def set_backward_passes_per_step(self, passes: int) -> None:
        self._reducer.passes = _positive(passes)

    def _take_in_new_parameters(self) -> None:
        """Parameters that were frozen when the optimizer was wrapped, and are not any more."""
        fresh = []
        for i, group in enumerate(self.param_groups):  # type: ignore[attr-defined]
            for j, parameter in enumerate(group["params"]):
                if parameter.requires_grad and id(parameter) not in self._reducer.by_id:
                    name = self._parameter_names.setdefault(parameter, f"parameter.{i}.{j}")
                    fresh.append((name, parameter))
        if fresh:
            self._reducer.add(fresh)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)  # type: ignore[misc]
        if "_reducer" in self.__dict__:
            self._take_in_new_parameters()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step with reduced gradients. A closure's gradients are reduced after each call."""
        if closure is not None:
            return self._step_with(closure)
        if self._should_synchronize:
            if self._reducer.synchronized:
                warnings.warn(
                    "step() after synchronize() without skip_synchronize(): the gradients are "
                    "not reduced again. Write `with optimizer.skip_synchronize(): "
                    "optimizer.step()`",
                    stacklevel=2,
                )
            self.synchronize()
        self._reducer.synchronized = False
        return super().step()  # type: ignore[misc]

    def _step_with(self, closure: Callable[[], Any]) -> Any:
        def reduced() -> Any:
            self._reducer.synchronized = False
            with torch.enable_grad():
                loss = closure()
            self.synchronize()
            if isinstance(self, torch.optim.LBFGS):
                # Its decisions depend on the loss: all ranks must see the same.
                loss = mpi_ops.allreduce(
                    torch.as_tensor(loss).detach(),
                    op=Average,
                    process_set=self._reducer.process_set,
                )
            return loss

        result = super().step(reduced)  # type: ignore[misc]
        self._reducer.synchronized = False
        return result

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        if self._reducer.in_flight():
            raise GradientsInFlight(
                f"rank {core.rank()}: zero_grad() was called after backward() and before step(), "
                "while gradients are being reduced: call it before backward(), or after step()"
            )
        self._reducer.forget_passes()
        super().zero_grad(*args, **kwargs)  # type: ignore[misc]


class _AdasumOptimizer(_Distributed):
    """Each rank makes its own step; the steps are combined by Adasum."""

    _adasum: dict[str, Any]

    def synchronize(self) -> None:
        """Nothing is in flight between steps."""

    def set_backward_passes_per_step(self, passes: int) -> None:
        _positive(passes)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """A step of this rank, replaced by the Adasum of all ranks' steps."""
        parameters = [p for p in _parameters(self.param_groups) if p.requires_grad]  # type: ignore
        with torch.no_grad():
            before = [parameter.detach().clone() for parameter in parameters]
        result = super().step(closure)  # type: ignore[misc]
        with torch.no_grad():
            handles = []
            for parameter, start in zip(parameters, before):
                small, ctx = self._adasum["compression"].compress(parameter.detach() - start)
                name = f"{self._adasum['prefix']}.{self._parameter_names[parameter]}"
                handle = mpi_ops.allreduce_async_(
                    small, name=name, op=Adasum, process_set=self._adasum["process_set"]
                )
                handles.append((handle, ctx))
            for parameter, start, (handle, ctx) in zip(parameters, before, handles):
                delta = self._adasum["compression"].decompress(handle.wait(), ctx)
                parameter.copy_(start + delta)
        return result

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)  # type: ignore[misc]
        if "_adasum" in self.__dict__:
            last = len(self.param_groups) - 1  # type: ignore[attr-defined]
            for j, parameter in enumerate(self.param_groups[last]["params"]):  # type: ignore
                self._parameter_names.setdefault(parameter, f"parameter.{last}.{j}")


# Step hooks of PyTorch belong to the user's own step(), which these call.
_GradientOptimizer.step.hooked = True  # type: ignore[attr-defined]
_AdasumOptimizer.step.hooked = True  # type: ignore[attr-defined]


def _positive(passes: int) -> int:
    if not isinstance(passes, int) or passes < 1:
        raise ValueError(f"backward_passes_per_step must be at least 1, not {passes!r}")
    return passes


_adasum_optimizers = 0


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Named | None = None,
    compression: Any = Compression.none,
    backward_passes_per_step: int = 1,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: int | Sequence[Sequence[torch.Tensor]] | None = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The optimizer, of a subclass of its own class, whose steps use the gradients of all ranks.

    The object given stays as it is and shares its parameters and state with the new one.
    """
    global _adasum_optimizers
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"a torch.optim.Optimizer is needed, not {type(optimizer).__name__}")
    if isinstance(optimizer, _Distributed):
        raise InvalidArgument("this optimizer is distributed already")
    core.require_initialised()
    if not process_set.included():
        raise InvalidArgument(
            f"rank {core.rank()} is not in {process_set}: only its members wrap the optimizer"
        )
    _positive(backward_passes_per_step)
    if op not in (Average, Sum, Adasum):
        raise ValueError("op must be Average, Sum or Adasum")
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor is possible with op == Average only")
    if not gradient_predivide_factor > 0.0:
        raise ValueError("gradient_predivide_factor must be positive")
    if num_groups:
        warnings.warn("num_groups is now called groups", DeprecationWarning, stacklevel=2)
        groups = num_groups if groups is None else groups

    names = name_parameters(optimizer.param_groups, named_parameters)
    parameters = [p for p in _parameters(optimizer.param_groups) if p.requires_grad]
    adasum = op == Adasum
    base = _AdasumOptimizer if adasum else _GradientOptimizer
    kind = type(optimizer)
    distributed: Any = type(kind.__name__, (base, kind), {"__module__": kind.__module__})
    wrapped = distributed.__new__(distributed)
    # One state for both: a scheduler made for the one steers the other.
    optimizer.__dict__.pop("step", None)
    wrapped.__dict__ = optimizer.__dict__
    wrapped._parameter_names = names
    wrapped._should_synchronize = True
    if adasum:
        wrapped._adasum = {
            "compression": compression,
            "process_set": process_set,
            "prefix": f"adasum.{_adasum_optimizers}",
        }
        _adasum_optimizers += 1
        return wrapped
    reducer = Reducer(
        op,
        compression,
        backward_passes_per_step,
        gradient_predivide_factor,
        sparse_as_dense,
        process_set,
    )
    reducer.add([(names[p], p) for p in parameters], _as_groups(groups, parameters))
    wrapped._reducer = reducer
    return wrapped
