"""Keyed state and operator state, by PyFlink's names."""

from penstock.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from penstock.state.interfaces import (
    AggregatingState,
    AppendingState,
    BroadcastState,
    ListState,
    MapState,
    MergingState,
    ReadOnlyBroadcastState,
    ReducingState,
    State,
    ValueState,
)
from penstock.state.operator_state import OperatorStateStore
from penstock.state.ttl_config import StateTtlConfig

__all__ = [
    "AggregatingState",
    "AggregatingStateDescriptor",
    "AppendingState",
    "BroadcastState",
    "ListState",
    "ListStateDescriptor",
    "MapState",
    "MapStateDescriptor",
    "MergingState",
    "OperatorStateStore",
    "ReadOnlyBroadcastState",
    "ReducingState",
    "ReducingStateDescriptor",
    "State",
    "StateDescriptor",
    "StateTtlConfig",
    "ValueState",
    "ValueStateDescriptor",
]
