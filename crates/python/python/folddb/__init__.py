"""FoldDB, an embedded store where the value of a key is the fold of everything written to it.

    >>> import folddb, tempfile
    >>> with folddb.create(tempfile.mkdtemp() + "/visits.folddb") as store:
    ...     visits = store.table("visits", key=str, fold="sum:u64")
    ...     _ = visits.fold("/index", 3)  # blind: reads nothing
    ...     visits["/index"]
    3

The page `docs/PYTHON.md` of the project has the rest.
"""

import atexit as _atexit
import os as _os
from typing import TYPE_CHECKING, Any, Callable

from ._folddb import (
    Batch,
    Columns,
    CustomFold,
    Feed,
    Find,
    Rows,
    Scan,
    Shared,
    Snapshot,
    Store,
    Table,
    Transaction,
    _close_all,
    _create,
    _forked,
    _open,
    _open_read_only,
    _open_secondary,
    backups,
    restore,
    verify,
)
from .errors import Error

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._folddb import _Settings

__all__ = [
    "Batch",
    "Columns",
    "CustomFold",
    "Error",
    "Feed",
    "Find",
    "Rows",
    "Scan",
    "Shared",
    "Snapshot",
    "Store",
    "Table",
    "Transaction",
    "backups",
    "create",
    "fold",
    "open",
    "open_read_only",
    "open_secondary",
    "restore",
    "verify",
]

# Threads of a store may run folds written in Python, so they end before the interpreter does.
_atexit.register(_close_all)

if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_forked)


def fold(
    name: str, *, version: int, samples: "list[Any]", value: Any = bytes
) -> "Callable[[Callable[[Any, Any], Any]], CustomFold]":
    """Makes a fold of a function of two values, the earlier and the later.

    >>> @fold("longest", version=1, value=str, samples=["", "a", "ab", "ba"])
    ... def longest(earlier, later):
    ...     return later if len(later) > len(earlier) else earlier
    >>> longest("ab", "b")
    'ab'

    Open a store with it, `folds=[longest]`, and create a table with it, `fold=longest`. The store
    keeps its name and its version: give it another version when it folds differently. It must be
    associative, which is checked on the samples, and depend on its arguments alone.

    It is slow: each fold takes the lock of the interpreter, also on the threads of the store.
    """

    def of(function: "Callable[[Any, Any], Any]") -> CustomFold:
        return CustomFold(function, name, version, value, samples)

    return of


def open(path: "str | _os.PathLike[str]", *, create: bool = False, **settings: "Unpack[_Settings]") -> Store:
    """Opens a store, to read it and to write to it.

    It must exist, unless `create` is true. Settings have the names that they have in Rust:
    `memory_bytes=64 << 20`, `durability="sync"`, ...
    """
    return _open(path, create=create, **settings)


def create(path: "str | _os.PathLike[str]", **settings: "Unpack[_Settings]") -> Store:
    """Creates a store in a directory that does not exist yet, or is empty, and opens it."""
    return _create(path, **settings)


def open_read_only(path: "str | _os.PathLike[str]", **settings: "Unpack[_Settings]") -> Store:
    """Opens a store to read it while no process writes: nothing on disk changes."""
    return _open_read_only(path, **settings)


def open_secondary(path: "str | _os.PathLike[str]", **settings: "Unpack[_Settings]") -> Store:
    """Opens a store to read it while another process may write to it.

    It shows the store as it was when it was opened; `refresh` opens it again.
    """
    return _open_secondary(path, **settings)
