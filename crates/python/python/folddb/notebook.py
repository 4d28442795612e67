"""How stores, tables, scans and columns are shown in notebooks, and pictures of what is on disk."""

from html import escape
from itertools import islice
from typing import Any, Dict, Iterable, List, Optional

ROWS_MAX = 10


def html(title: str, scan: Any) -> str:
    """The first rows of a scan as a table of HTML."""
    rows = list(islice(iter(scan), ROWS_MAX + 1))
    names: Dict[str, None] = {}
    shown = []
    for key, value in rows[:ROWS_MAX]:
        cells = _cells(value)
        names.update(dict.fromkeys(cells))
        shown.append((key, cells))
    body = [[_text(key), *(_text(cells.get(name, "")) for name in names)] for key, cells in shown]
    return _table(title, ["key", *names], body, is_cut=len(rows) > ROWS_MAX)


def columns_html(title: str, names: List[str], rows: List[List[str]], length: int) -> str:
    """The first rows of columns, given as texts."""
    shown = [[_text(cell) for cell in row] for row in rows[:ROWS_MAX]]
    return _table(title, names, shown, is_cut=length > len(shown))


def store_html(store: Any) -> str:
    """The tables of a store, with their sizes."""
    rows = []
    for name in store.tables():
        stats = store[name].stats()
        sizes = [_bytes(stats["disk_bytes"]), _bytes(stats["memtable_bytes"])]
        rows.append([name, f"{stats['keys_estimate']:,}", f"{stats['records']:,}", str(stats["runs"]), *sizes])
    names = ["table", "keys, about", "records", "runs", "on disk", "in memtables"]
    return _table(f"store {store.path}", names, rows)


def plot_tiers(store: Any, axes: Optional[Any] = None) -> Any:
    """Draws the runs of each table as one bar, a color for each tier; returns the axes."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plot_tiers() needs Matplotlib: pip install matplotlib") from error
    axes = axes if axes is not None else pyplot.subplots()[1]
    labeled = set()
    for row, name in enumerate(store.tables()):
        left = 0.0
        for run in store[name].runs():
            tier, mebibytes = run["tier"], run["disk_bytes"] / (1 << 20)
            label = None if tier in labeled else f"tier {tier}"
            labeled.add(tier)
            axes.barh(row, mebibytes, left=left, color=f"C{tier % 10}", edgecolor="white", label=label)
            left += mebibytes
    axes.set_yticks(range(len(store.tables())), store.tables())
    axes.set_xlabel("MiB on disk, newest run first")
    if labeled:
        axes.legend()
    return axes


def _table(title: str, names: Iterable[str], rows: Iterable[List[str]], is_cut: bool = False) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr><th>{}</th>{}</tr>".format(
            escape(first), "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        )
        for first, *cells in rows
    )
    more = f"<p>the first {ROWS_MAX} rows</p>" if is_cut else ""
    return f"<b>{escape(title)}</b><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _bytes(count: float) -> str:
    for unit in ["B", "KiB", "MiB", "GiB"]:
        if count < 1024 or unit == "GiB":
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1024
    raise AssertionError("the last unit takes any number")


def _cells(value: Any, name: str = "") -> Dict[str, Any]:
    """A value as named cells; the values of a dict are named by their paths."""
    if not isinstance(value, dict):
        return {name or "value": value}
    cells: Dict[str, Any] = {}
    for part, inner in value.items():
        cells.update(_cells(inner, f"{name}.{part}" if name else str(part)))
    return cells


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else text[:80] + "..."
