"""Answers judged by their outcome: question sets as data, truths computed by independent code, one command.

Nothing here imports from `services/`: the examiner knows the data, the ontology and the HTTP API, and not what answers.
"""
