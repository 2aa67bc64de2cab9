"""TypeSerializer: how values of one type become bytes and come back.

>>> from penstock.common import Types
>>> serializer = TypeSerializer(Types.TUPLE([Types.STRING(), Types.INT()]))
>>> serializer.deserialize(serializer.serialize(("a", 2**31)))
('a', -2147483648)
"""

from __future__ import annotations

import pickle
from typing import Any

from penstock.common.typeinfo.base import TypeInformation


class TypeSerializer:
    """Turns values of a declared type into bytes, as they are in buffers and in state.

    A value is first converted to the type, so that what is read is what a stream of that type
    would hold.
    """

    def __init__(self, type_info: TypeInformation) -> None:
        self.type_info = type_info
        self._convert = type_info.converter()

    def serialize(self, value: Any) -> bytes:
        """The bytes of a value; TypeMismatchError if it does not fit the type."""
        return pickle.dumps(value if self._convert is None else self._convert(value), protocol=5)

    def deserialize(self, data: bytes) -> Any:
        """The value that was serialized. Only for bytes that you trust: they are a pickle."""
        return pickle.loads(data)
