"""A broker with transactions in the simulator, and jobs that write to it.

`broker` is the model of a cluster: transactional ids, epochs that fence, transactions that time
out, ids that are forgotten, answers that are lost. `sink` connects the Kafka sink to it: its
writers, committer and lease are the code that talks to a real cluster. `scenarios` runs jobs.
"""
