"""The stages on Spark: workers scan what they read, correlation runs in keyed state, each batch is one store transaction.

The only package that imports pyspark. Its final incidents must equal those of `engine/pipeline.py`.
"""
