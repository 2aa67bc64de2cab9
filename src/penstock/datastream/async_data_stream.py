"""Asynchronous calls on a stream, by PyFlink's names."""

from __future__ import annotations

from penstock.common.time import Time
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.async_function_descriptor import AsyncFunctionDescriptor
from penstock.datastream.checks import need
from penstock.datastream.streams import DataStream
from penstock.runtime.async_functions import AsyncFunction, AsyncRetryStrategy

DEFAULT_CAPACITY = 100


_ORDERED = AsyncFunctionDescriptor.OutputMode.ORDERED
_UNORDERED = AsyncFunctionDescriptor.OutputMode.UNORDERED


class AsyncDataStream:
    """Ask something outside about every record, many at a time."""

    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction,
        timeout: Time,
        capacity: int = DEFAULT_CAPACITY,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Results go on as they come, but never past a watermark."""
        return _wait(data_stream, async_function, timeout, capacity, None, _UNORDERED, output_type)

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction,
        timeout: Time,
        async_retry_strategy: AsyncRetryStrategy,
        capacity: int = DEFAULT_CAPACITY,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """The same with further tries; `timeout` is the time for all of them."""
        need(async_retry_strategy, AsyncRetryStrategy, "unordered_wait_with_retry()")
        retry = async_retry_strategy
        return _wait(data_stream, async_function, timeout, capacity, retry, _UNORDERED, output_type)

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction,
        timeout: Time,
        capacity: int = DEFAULT_CAPACITY,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Results go on in the order of their records."""
        return _wait(data_stream, async_function, timeout, capacity, None, _ORDERED, output_type)

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction,
        timeout: Time,
        async_retry_strategy: AsyncRetryStrategy,
        capacity: int = DEFAULT_CAPACITY,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """The same with further tries; `timeout` is the time for all of them."""
        need(async_retry_strategy, AsyncRetryStrategy, "ordered_wait_with_retry()")
        retry = async_retry_strategy
        return _wait(data_stream, async_function, timeout, capacity, retry, _ORDERED, output_type)


def _wait(
    stream: DataStream,
    function: AsyncFunction,
    timeout: Time,
    capacity: int,
    retry: AsyncRetryStrategy | None,
    mode: AsyncFunctionDescriptor.OutputMode,
    output_type: TypeInformation | None,
) -> DataStream:
    need(stream, DataStream, "AsyncDataStream")
    retry = retry or AsyncRetryStrategy.no_restart()
    operator = AsyncFunctionDescriptor(function, timeout, capacity, retry, mode).operator()
    # It heads its chain: what it emits later must not be taken for results of the record at hand.
    return stream._stream("Async Wait", operator, output_type).start_new_chain()
