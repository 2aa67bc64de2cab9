"""Which right is missing when a broker refuses to read: the words for the owner of the cluster.

A right that is missing is missing in the next attempt too, so that such an error ends the job.
"""

from __future__ import annotations

from typing import Any

from penstock.connectors.kafka.settings import need_client
from penstock.errors import SourceError, SourceRefusedError


def failure(
    what: str, error: BaseException, topic: str | None = None, group: str | None = None
) -> SourceError:
    """The error of a source for what the client raised: what failed, why, the right to ask for."""
    [first, *_] = error.args or (None,)
    if not isinstance(first, need_client().KafkaError):
        return SourceError(f"{what}: {str(error) or type(error).__name__}")
    return reported(what, first, topic, group)


def reported(what: str, error: Any, topic: str | None, group: str | None) -> SourceError:
    """The same for an error that the client reported."""
    right = right_to_ask_for(error, topic, group)
    text = f"{what}: {error.str()}{right}"
    return SourceRefusedError(text) if right else SourceError(text)


def right_to_ask_for(error: Any, topic: str | None, group: str | None) -> str:
    """The ACL that the broker misses, as the end of a sentence; empty if it is not about rights."""
    errors = need_client().KafkaError
    if error.code() == errors.TOPIC_AUTHORIZATION_FAILED:
        what = "the topic" if topic is None else f"the topic {topic}"
        return f"; ask for an ACL that allows READ and DESCRIBE on {what}"
    if error.code() == errors.GROUP_AUTHORIZATION_FAILED:
        return f"; ask for an ACL that allows READ on the group {group}"
    return ""
