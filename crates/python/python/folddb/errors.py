"""Exceptions, one class for each kind of error, with the names of the kinds in Rust and in C.

Each is an `Error`, and a subclass of Python's own class for such errors, if there is one:
`except FileNotFoundError` catches a `StoreNotFound`. The text names the thing and the place, and
says what the caller can do.
"""


class Error(Exception):
    """Anything that FoldDB refuses or fails to do."""


class InvalidInput(Error, ValueError):
    """The call itself is wrong: a key of another type, a rule that is not possible. Fix the call."""


class StoreNotFound(Error, FileNotFoundError):
    """There is no store at this path."""


class AlreadyExists(Error, FileExistsError):
    """There is something of this name already."""


class TableNotFound(Error, LookupError):
    """The store has no table of this name."""


class RulesMismatch(Error):
    """The table has different rules, or a function that they name was not given."""


class Locked(Error):
    """Another process, or another handle of this one, has the store open."""


class NewerFormat(Error):
    """The store was written by a newer version of FoldDB."""


class Permission(Error, PermissionError):
    """The operating system refuses access to a file."""


class NoSpace(Error):
    """The disk or the disk quota of the store is full. Writes resume when there is space."""


class NotDurable(Error):
    """A synced commit is written and visible, but the disk has not confirmed it."""


class Corruption(Error):
    """Bytes on disk are not what was written."""


class Poisoned(Error):
    """An earlier write failed: writes are refused until the store is reopened. Reads continue."""


class FoldFailed(Error):
    """The fold of the table failed on this key. Other keys are untouched."""


class Conflict(Error):
    """What a transaction has read was changed since. Nothing of it is written: begin it again."""


class SnapshotTooOld(Error):
    """What a snapshot saw is no longer kept."""


class FeedLost(Error):
    """A feed has lost its place. Begin it again."""


class ReadOnly(Error):
    """The store or the table is for reading only."""


class Closed(Error, ValueError):
    """The store is closed, the table is dropped, or the process was forked since."""


class Stopped(Error):
    """A callback has stopped this work. Each call says what stays of it."""


class Io(Error, OSError):
    """Any other failure of the operating system."""
