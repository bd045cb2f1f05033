"""The flow hosted by Spark: any source scanned where it is read, correlation in keyed state, one transaction a batch.

The only place that imports pyspark. Must end where `engine/pipeline.py` ends.
"""
