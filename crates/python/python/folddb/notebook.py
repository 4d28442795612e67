"""How tables and scans are shown in notebooks."""

from html import escape
from itertools import islice
from typing import Any, Dict

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
    head = "".join(f"<th>{escape(name)}</th>" for name in ["key", *names])
    body = "".join(
        "<tr><th>{}</th>{}</tr>".format(
            escape(_text(key)), "".join(f"<td>{escape(_text(cells.get(name, '')))}</td>" for name in names)
        )
        for key, cells in shown
    )
    more = f"<p>the first {ROWS_MAX} rows</p>" if len(rows) > ROWS_MAX else ""
    return f"<b>{escape(title)}</b><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


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
