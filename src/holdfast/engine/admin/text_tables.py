"""Tables as text, with rows that begin and end with a bar, as command line clients read them."""

from collections.abc import Sequence


def text_table(header: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """Return a table with a header.

    >>> print(text_table(("Queue", "Pending"), [("TOTAL", 3)]))
    +-------+---------+
    | Queue | Pending |
    +-------+---------+
    | TOTAL |       3 |
    +-------+---------+
    """
    lines = [[str(cell) for cell in line] for line in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    are_numbers = [all(isinstance(cell, int | float) for cell in column) for column in zip(*rows, strict=True)]
    border = f"+{'+'.join('-' * (width + 2) for width in widths)}+"
    shapes = list(zip(widths, are_numbers or [False] * len(widths), strict=True))

    def row(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, (width, is_number) in zip(cells, shapes, strict=True)
        ]
        return f"| {' | '.join(padded)} |"

    return "\n".join([border, row(lines[0]), border, *map(row, lines[1:]), border])
