"""Which answers of asynchronous calls are worth another try, by PyFlink's names.

>>> from functools import partial
>>> from penstock.datastream import AsyncRetryStrategy
>>> lost = partial(exception_type_predicate, expected_error_type=ConnectionError)
>>> retry = AsyncRetryStrategy.fixed_delay(3, 100, empty_result_predicate, lost)
>>> empty_result_predicate([]), lost(ConnectionResetError()), lost(ValueError())
(True, True, False)
"""

from __future__ import annotations

from collections.abc import Sized

__all__ = ["empty_result_predicate", "exception_type_predicate", "has_exception_predicate"]


def empty_result_predicate(result: Sized | None) -> bool:
    """Whether a call gave nothing: for `result_predicate`."""
    return result is None or len(result) == 0


def has_exception_predicate(error: BaseException | None) -> bool:
    """Whether a call failed, however it did: for `exception_predicate`."""
    return error is not None


def exception_type_predicate(
    error: BaseException | None,
    expected_error_type: type[BaseException] | tuple[type[BaseException], ...],
) -> bool:
    """Whether a call failed in this way; give the type with `functools.partial`."""
    return isinstance(error, expected_error_type)
