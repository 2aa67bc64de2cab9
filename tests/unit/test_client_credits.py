"""Sinks that speak to the client get their credits back while the client keeps up."""

from __future__ import annotations

import pytest

from penstock.graph.execution_graph import SubtaskId
from penstock.jobmanager.client_credits import ClientCredits
from penstock.network.messages import EmitCredit, Emitted

SINK = SubtaskId(4, 1)
CREDIT = EmitCredit(1, SINK, "sink", 1)


class Client:
    """Keeps up or not; notes which credits the slots are told of."""

    def __init__(self):
        self.keeps_up, self.told = True, []

    def client_keeps_up(self):
        return self.keeps_up

    def tell_subtask(self, subtask, message):
        self.told.append((subtask, message))


@pytest.fixture
def client():
    return Client()


@pytest.fixture
def credits(client):
    return ClientCredits(client, client)


def emit(credits):
    credits.emitted(Emitted(1, SINK, "sink", 0, [b"value"]))


def test_a_credit_goes_back_at_once_while_the_client_keeps_up(client, credits):
    emit(credits)
    assert client.told == [(SINK, CREDIT)]
    emit(credits)
    assert len(client.told) == 2, "each credit is given back once"


def test_credits_are_held_back_until_the_client_has_caught_up(client, credits):
    client.keeps_up = False
    emit(credits)
    emit(credits)
    credits.client_moved()
    assert client.told == []
    client.keeps_up = True
    credits.client_moved()
    assert client.told == [(SINK, CREDIT)] * 2


def test_credits_of_an_attempt_that_is_over_are_not_given_to_the_next(client, credits):
    client.keeps_up = False
    emit(credits)
    credits.forget()
    client.keeps_up = True
    credits.client_moved()
    assert client.told == []
