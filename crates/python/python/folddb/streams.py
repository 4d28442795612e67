"""Long values as file-like objects."""

import io
from typing import Any, Optional


class ValueReader(io.RawIOBase):
    """Reads a value in pieces, from any place. `table.reader(key)` gives one with a buffer."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read: bytes = self._raw.read(len(buffer))
        buffer[: len(read)] = read
        return len(read)

    def seek(self, offset: int, whence: int = 0) -> int:
        place: int = self._raw.seek(offset, whence)
        return place

    def tell(self) -> int:
        return self.seek(0, 1)


class ValueWriter(io.RawIOBase):
    """Writes a value in pieces. The key has the value once the writer is closed, and not before.

    A `with` block that raises writes nothing, nor does a writer that is dropped unclosed.
    """

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.seq: Optional[int] = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        written: int = self._raw.write(bytes(data))
        return written

    def close(self) -> None:
        """Makes what was written the value of the key."""
        if not self.closed:
            super().close()
            self.seq = self._raw.finish()

    def forget(self) -> None:
        """Discards what was written."""
        super().close()
        self._raw.forget()

    def __exit__(self, kind: Any, *raised: Any) -> None:
        if kind is None:
            self.close()
        else:
            self.forget()

    def __del__(self) -> None:
        if not self.closed:
            self.forget()


def reader(raw: Any) -> io.BufferedReader:
    """The reader of a value, with a buffer."""
    return io.BufferedReader(ValueReader(raw))


def writer(raw: Any) -> ValueWriter:
    """The writer of a value."""
    return ValueWriter(raw)
