"""Turns raw lines into events in three pure stages: unwrap, assemble, decode. No I/O, no clock; imports no other stage.

A slice of a stream can be parsed by itself: `Assembler(formats, mid_stream=True)`, then `join` and `settle` at its borders.
"""

from engine.parse.assembling import Assembler, assemble, join, settle
from engine.parse.decoding import decode, decode_block
from engine.parse.unwrapping import unwrap, unwrap_line

__all__ = ["Assembler", "assemble", "decode", "decode_block", "join", "settle", "unwrap", "unwrap_line"]
