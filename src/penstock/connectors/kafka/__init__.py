"""Kafka: a source that reads partitions, a sink that writes in transactions.

The public names are in `penstock.datastream.connectors.kafka`. The client library,
confluent-kafka, is imported when a client is made, so that a program can be planned without it.
"""
