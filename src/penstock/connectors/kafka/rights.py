"""Which right is missing when a broker refuses to read: the words for the owner of the cluster."""

from __future__ import annotations

from typing import Any

from penstock.connectors.kafka.settings import need_client


def reason(error: BaseException, topic: str | None, group: str | None) -> str:
    """Why the client raised `error`, and the right to ask for if it is about one."""
    [first, *_] = error.args or (None,)
    if not isinstance(first, need_client().KafkaError):
        return str(error) or type(error).__name__
    return f"{first.str()}{right_to_ask_for(first, topic, group)}"


def right_to_ask_for(error: Any, topic: str | None, group: str | None) -> str:
    """The ACL that the broker misses, as the end of a sentence; empty if it is not about rights."""
    errors = need_client().KafkaError
    if error.code() == errors.TOPIC_AUTHORIZATION_FAILED:
        what = "the topic" if topic is None else f"the topic {topic}"
        return f"; ask for an ACL that allows READ and DESCRIBE on {what}"
    if error.code() == errors.GROUP_AUTHORIZATION_FAILED:
        return f"; ask for an ACL that allows READ on the group {group}"
    return ""
