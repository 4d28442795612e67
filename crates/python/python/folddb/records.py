"""Named tuples: facts about keys and values, and the events of feeds."""

from datetime import datetime
from typing import Any, List, NamedTuple, Optional


class Aggregate(NamedTuple):
    """The number of rows in a range, and the fold of their values."""

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
    """The state of a key after one of its records. The value is None if the key was absent."""

    seq: Optional[int]
    time: Optional[datetime]
    value: Any
    deadline: Optional[datetime]


class Begin(NamedTuple):
    """A feed begins: the rows that were there at this seq follow."""

    seq: int
    time: datetime


class Row(NamedTuple):
    """A row that was there when the feed began. A long value is None here: get it by its key."""

    table: str
    key: Any
    value: Any
    deadline: Optional[datetime]


class RowsEnd(NamedTuple):
    """All rows that were there have been given; changes follow."""


class Change(NamedTuple):
    """One op.

    For a long value, `value` is its length in bytes, and `op` ends in `_long`. For `delete_range`,
    `key` and `value` are its bounds, the second excluded. A bound that is no key, such as the end of
    a prefix of tuples, is bytes.
    """

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
    """A table of the feed was created."""

    table: str


class TableDropped(NamedTuple):
    """A table of the feed was dropped."""

    table: str
