"""A real Kafka broker for tests, on loopback, from Maven Central's jars.

    with kafka_broker() as broker:
        broker.create_topic("payments", partitions=3)
        ...                       # clients connect to broker.bootstrap_servers
        broker.kill()             # kill -9
        broker.start()            # the same data, the same port

`kafka_cluster` starts several that are one cluster.

The first use fetches about 45 MB into the user's cache. It needs Java and ``penstock[kafka]``.
"""

from penstock.testing.kafka.broker import KafkaBroker, Security, kafka_broker
from penstock.testing.kafka.cluster import KafkaCluster, kafka_cluster

__all__ = ["KafkaBroker", "KafkaCluster", "Security", "kafka_broker", "kafka_cluster"]
