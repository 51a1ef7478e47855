"""Elastic names for TensorFlow, for a fixed number of ranks."""

from __future__ import annotations

import functools
from typing import Any, Callable

import numpy
import tensorflow as tf

from .. import elastic as _elastic
from ..elastic import HostsUpdatedInterrupt, ObjectState, State  # noqa: F401
from ..errors import Mismatch, OperationFailed, RankLost
from .functions import broadcast_variables

_MARK = "farandole: "


def as_own_error(error: Any) -> OperationFailed | None:
    """TensorFlow's error for a failed operation as one of ours; None if it is not of ours."""
    text = getattr(error, "message", None) or str(error)
    if _MARK not in text:
        return None
    line = text.split(_MARK, 1)[1].split("\n")[0]
    if isinstance(error, tf.errors.InvalidArgumentError):
        return Mismatch(line)
    if isinstance(error, tf.errors.InternalError):
        return RankLost(line)
    return OperationFailed(line)


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: synchronises `state`, then calls func(state, …) until it returns."""

    @functools.wraps(func)
    def translated(*args: Any, **kwargs: Any) -> Any:
        try:
            return func(*args, **kwargs)
        except tf.errors.OpError as error:
            own = as_own_error(error)
            if own is None:
                raise
            raise own from error

    return _elastic.run(translated)


class TensorFlowState(ObjectState):
    """Variables (all global ones of a session, if none are given), and values by name."""

    def __init__(self, variables: Any = None, session: Any = None, **kwargs: Any) -> None:
        if variables is None:
            variables = tf.compat.v1.global_variables()
        self.variables = list(variables)
        self.session = session
        self._kept: list[numpy.ndarray] = []
        self._placeholders: list[Any] = []
        self._assigns: list[Any] = []
        self._broadcast: Any = None
        super().__init__(**kwargs)
        self._keep()

    def _graph_session(self) -> Any:
        if tf.executing_eagerly():
            return None
        return self.session or tf.compat.v1.get_default_session()

    def _keep(self) -> None:
        session = self._graph_session()
        if session is not None:
            self._kept = session.run(self.variables)
        else:
            self._kept = [numpy.array(each) for each in self.variables]

    def save(self) -> None:
        self._keep()
        super().save()

    def restore(self) -> None:
        session = self._graph_session()
        if session is None:
            for variable, value in zip(self.variables, self._kept):
                variable.assign(value)
        else:
            if not self._assigns:
                for variable in self.variables:
                    place = tf.compat.v1.placeholder(variable.dtype.base_dtype, variable.shape)
                    self._placeholders.append(place)
                    self._assigns.append(variable.assign(place))
            session.run(self._assigns, dict(zip(self._placeholders, self._kept)))
        super().restore()

    def sync(self) -> None:
        session = self._graph_session()
        if session is None:
            broadcast_variables(self.variables, root_rank=0)
        else:
            if self._broadcast is None:
                self._broadcast = broadcast_variables(self.variables, root_rank=0)
            session.run(self._broadcast)
        self._keep()
        super().sync()


def __getattr__(name: str) -> Any:
    """TensorFlowKerasState needs Keras, which is loaded when it is asked for."""
    if name == "TensorFlowKerasState":
        from .._keras.elastic import TensorFlowKerasState

        return TensorFlowKerasState
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
