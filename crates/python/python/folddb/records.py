"""Named tuples: what is told about keys and values, and the events of feeds."""

from datetime import datetime
from typing import Any, List, NamedTuple, Optional


class Aggregate(NamedTuple):
    """What the values of a range add up to."""

    rows: int
    value: Any


class Head(NamedTuple):
    """What is known of a value without reading it."""

    size_bytes: int
    hash: int
    is_separated: bool
    written: Optional[datetime]
    deadline: Optional[datetime]
    version: Optional[int]


class HistoryEntry(NamedTuple):
    """What a key was from a record on. The value is None where the key was absent."""

    seq: Optional[int]
    time: Optional[datetime]
    value: Any
    deadline: Optional[datetime]


class Begin(NamedTuple):
    """A feed begins: the rows that were there at this seq follow."""

    seq: int
    time: datetime


class Row(NamedTuple):
    """A row that was there when the feed began. The value of a long one is None: get it."""

    table: str
    key: Any
    value: Any
    deadline: Optional[datetime]


class RowsEnd(NamedTuple):
    """The rows that were there have been told; changes follow."""


class Change(NamedTuple):
    """One op. Of a long value, `value` is how many bytes it has, and `op` ends in `_long`."""

    seq: int
    table: str
    op: str
    key: Any
    value: Any


class Changes(NamedTuple):
    """What was committed together."""

    first_seq: int
    last_seq: int
    time: Optional[datetime]
    ops: List[Change]


class TableCreated(NamedTuple):
    """A table that the feed tells of was created."""

    table: str


class TableDropped(NamedTuple):
    """A table that the feed tells of was dropped."""

    table: str
