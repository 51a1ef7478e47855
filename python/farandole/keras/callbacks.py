"""Callbacks for Model.fit()."""

from __future__ import annotations

import keras as _keras_package

from .._keras.callbacks import callbacks as _callbacks

_made = _callbacks(_keras_package)

BroadcastGlobalVariablesCallback = _made.BroadcastGlobalVariablesCallback
MetricAverageCallback = _made.MetricAverageCallback
LearningRateScheduleCallback = _made.LearningRateScheduleCallback
LearningRateWarmupCallback = _made.LearningRateWarmupCallback
BestModelCheckpoint = _made.BestModelCheckpoint
