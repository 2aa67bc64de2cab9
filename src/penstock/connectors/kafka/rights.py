"""Which right is missing when a broker refuses to read: the words for the owner of the cluster."""

from __future__ import annotations

from typing import Any

from penstock.connectors.kafka.settings import need_client


def right_to_ask_for(error: Any, topic: str | None, group: str | None) -> str:
    """The ACL that the broker misses, as the end of a sentence; empty if it is not about rights."""
    errors = need_client().KafkaError
    if error.code() == errors.TOPIC_AUTHORIZATION_FAILED:
        what = "the topic" if topic is None else f"the topic {topic}"
        return f"; ask for an ACL that allows READ and DESCRIBE on {what}"
    if error.code() == errors.GROUP_AUTHORIZATION_FAILED:
        return f"; ask for an ACL that allows READ on the group {group}"
    return ""
