"""Columns: a log read as Arrow arrays, saying the same as if the stages of engine/pipeline read it line by line.

`lines -> records -> events -> classes -> matches`, a module a table. The reference decides: once per class of events that are
equal but for their digits, and for each event by itself that columns cannot decide. Pure; pyarrow is loaded when the first
block is read.
"""
