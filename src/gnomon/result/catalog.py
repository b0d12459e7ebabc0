"""A catalog of all runs below a folder, to be asked in SQL.

``open_catalog(folder)`` looks for run folders, however deep, and makes three tables: ``runs`` (what was run, finished or not), ``headline`` (a row per headline number) and ``labels``
(answers that are words). Every measure is a table as well, with a row per layer and head of every run that has it; such a table is read from the runs when a query first names it.

Tables are kept as Parquet files in ``.gnomon-catalog`` beside the runs and made anew for the runs whose record or store changed. A cache that is damaged, foreign or cannot be written is
done without. Runs are only ever read.

Queries are one statement that reads: DuckDB runs it in memory, over tables handed to it as objects, with access to files and its own settings locked. No name of a file or a run
becomes part of a statement.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

from gnomon.errors import ConfigError, GnomonError, RunError
from gnomon.result.atomic import write_file
from gnomon.result.catalog_rows import HEADLINE_COLUMNS, LABEL_COLUMNS, RUN_COLUMNS, RunRows, readable, rows_of
from gnomon.result.folder import COMPLETE, RECORD, STORE
from gnomon.result.reading import open_run

CACHE: Final = ".gnomon-catalog"
LAYOUT: Final = 1
STATE: Final = b"gnomon"
COLUMNS: Final = {"runs": RUN_COLUMNS, "headline": HEADLINE_COLUMNS, "labels": LABEL_COLUMNS}

State = dict[str, str]
Table = Any

log = logging.getLogger(__name__)


class Found(NamedTuple):
    """Rows that answer a query."""

    columns: list[str]
    rows: list[tuple[Any, ...]]


class Catalog:
    """All runs below one folder.

    Attributes:
        folder: the folder.
        tables: ``runs``, ``headline`` and ``labels`` as Arrow tables.
    """

    def __init__(self, folder: Path, tables: dict[str, Table], state: State) -> None:
        self.folder = folder
        self.tables = tables
        self._state = state

    @property
    def measures(self) -> list[str]:
        """Names of everything that some complete run measured; each is a table."""
        found = {name for row in self.tables["runs"].column("measures").to_pylist() for name in row or ()}
        return sorted(name for name in found if name.casefold() not in self.tables)

    def table(self, name: str) -> Table:
        """One table as an Arrow table: ``runs``, ``headline``, ``labels``, or a measure with a row per layer and head of each run that has it."""
        if name in self.tables:
            return self.tables[name]
        if name not in self.measures:
            raise ConfigError(f"`table` must be one of {', '.join([*self.tables, *self.measures])}, got {name!r}.")
        path = self.folder / CACHE / f"measure-{hashlib.sha256(name.encode()).hexdigest()[:16]}.parquet"
        kept, state = _read(path) or (None, {})
        if state != self._state:
            kept = self._measured(name, kept, {run for run, stamp in state.items() if self._state.get(run) == stamp})
            self.keep(path.stem, kept)
        return kept

    def keep(self, name: str, table: Table) -> None:
        """Keeps a table beside the runs; not in a folder without runs, nor within a run, which others may want to find as they left it."""
        if self._state and "." not in self._state:
            _write(self.folder / CACHE / f"{name}.parquet", table, self._state)

    def query(self, sql: str) -> Found:
        """Runs one statement that reads.

        Raises:
            ConfigError: if it is not one such statement, or DuckDB refuses it; in one sentence.
        """
        import duckdb

        sql = readable(sql)
        settings = {"enable_external_access": "false", "python_enable_replacements": "false", "lock_configuration": "true"}
        with duckdb.connect(":memory:", config=settings) as connection:
            try:
                statements = connection.extract_statements(sql)
                if len(statements) != 1 or statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
                    kinds = ", ".join(statement.type.name for statement in statements) or "nothing"
                    raise ConfigError(
                        f"`sql` must be one statement that reads, such as SELECT, got {kinds}; runs are never changed here."
                    )
                asked = {name.strip('"').casefold() for name in connection.get_table_names(sql)}
                for name in (*self.tables, *(name for name in self.measures if name.casefold() in asked)):
                    connection.register(name, self.table(name))
                answer = connection.execute(statements[0])
                columns = [column[0] for column in answer.description]
                return Found(
                    columns,
                    [tuple(float(cell) if isinstance(cell, Decimal) else cell for cell in row) for row in answer.fetchall()],
                )
            except duckdb.Error as error:
                raise ConfigError(f"`sql` must be a query over {self._hint()}, but {_first_line(error)}") from error

    def _measured(self, name: str, kept: Table | None, unchanged: set[str]) -> Table:
        """The rows of one measure: what was kept of runs that did not change, and the others read."""
        import pyarrow as pa
        import pyarrow.compute as pc

        runs, paths = self.tables["runs"], _paths(self.folder)
        shared = ("run", "model", "scheme", "measures", "status")
        found = [] if kept is None else [kept.filter(pc.is_in(kept.column("run"), pa.array(sorted(unchanged), pa.string())))]
        for run, model, scheme, measures, status in zip(*(runs.column(key).to_pylist() for key in shared), strict=True):
            if run in unchanged or run not in paths or status != COMPLETE or name not in (measures or ()):
                continue
            try:
                frame = open_run(paths[run]).to_dataframe(name)
            except RunError as error:
                log.warning("left out of the table %s: %s", name, error)
                continue
            frame = frame.rename(columns={key: f"measured_{key}" for key in shared[:3] if key in frame})
            for place, (key, value) in enumerate((("run", run), ("model", model), ("scheme", scheme))):
                frame.insert(place, key, value)
            found.append(pa.Table.from_pandas(frame, preserve_index=False))
        if not found:
            raise RunError(f"{self.folder} must hold a whole run with {name}, but none can be read; make one again.")
        return _stacked([_typed(table) for table in found])

    def _hint(self) -> str:
        return ", ".join([*self.tables, *self.measures])


def open_catalog(folder: str | Path) -> Catalog:
    """The catalog of all runs in ``folder`` and below, from what was kept and from the runs that changed since.

    Raises:
        RunError: if there is no such folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise RunError(f"`folder` must be a folder with runs, got {readable(folder)}; `gnomon survey` makes runs below runs/.")
    paths = _paths(folder)
    state = {run: _stamp(path) for run, path in paths.items()}
    kept = {name: _read(folder / CACHE / f"{name}.parquet") for name in COLUMNS}
    states = [one[1] for one in kept.values() if one is not None]
    whole = len(states) == len(COLUMNS) and all(one == states[0] for one in states)
    if whole and states[0] == state:
        return Catalog(folder, {name: one[0] for name, one in kept.items() if one is not None}, state)
    before = {name: _by_run(one[0]) for name, one in kept.items() if one is not None} if whole else {}
    rows = {}
    for run, path in paths.items():
        if before and states[0].get(run) == state[run]:
            rows[run] = RunRows(before["runs"][run][0], before["headline"].get(run, []), before["labels"].get(run, []))
        else:
            rows[run] = rows_of(run, path)
    tables = {
        "runs": _table([one.run for one in rows.values()], RUN_COLUMNS),
        "headline": _table([row for one in rows.values() for row in one.headline], HEADLINE_COLUMNS),
        "labels": _table([row for one in rows.values() for row in one.labels], LABEL_COLUMNS),
    }
    catalog = Catalog(folder, tables, state)
    for name, table in tables.items():
        catalog.keep(name, table)
    return catalog


def find_runs(folder: Path) -> list[str]:
    """Run folders in ``folder`` and below, relative to it and in order; links are not followed and hidden folders left out."""
    return sorted(_runs(folder, ""), key=os.fsencode)


def _paths(folder: Path) -> dict[str, Path]:
    return {readable(name): folder / name for name in find_runs(folder)}


def _runs(folder: Path, name: str) -> Iterator[str]:
    try:
        entries = list(os.scandir(folder / name))
    except OSError as error:
        log.warning("not looked into: %s (%s)", readable(folder / name), error.strerror)
        return
    if any(entry.name == RECORD for entry in entries):
        yield name or "."
    for entry in entries:
        if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".") and entry.name not in (STORE, "parts"):
            yield from _runs(folder, f"{name}/{entry.name}" if name else entry.name)


def _stamp(path: Path) -> str:
    """What changes whenever a record or a store does."""
    marks = []
    for name in (RECORD, STORE):
        try:
            found = (path / name).stat()
            marks.append([found.st_mtime_ns, found.st_size, found.st_ino])
        except OSError:
            marks.append([])
    return json.dumps([LAYOUT, *marks])


def _read(path: Path) -> tuple[Table, State] | None:
    """A kept table and the state of the runs that it was made from; ``None`` for anything else."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # The bytes are read here: a path handed on would be searched for patterns and protocols.
        table = pq.read_table(pa.BufferReader(path.read_bytes()))
        state = json.loads((table.schema.metadata or {}).get(STATE, b"null"))
    except (OSError, ValueError, pa.ArrowException):
        return None
    wanted = COLUMNS.get(path.stem)
    fits = isinstance(state, dict) and (wanted is None or table.column_names == list(wanted))
    return (table, state) if fits else None


def _write(path: Path, table: Table, state: State) -> None:
    """Keeps a table; a folder that cannot be written is done without."""
    import pyarrow.parquet as pq

    fill: Callable[[Any], None] = lambda file: pq.write_table(  # noqa: E731
        table.replace_schema_metadata({STATE: json.dumps(state).encode()}), file, compression="zstd"
    )
    try:
        path.parent.mkdir(exist_ok=True)
        write_file(path, fill)
    except (OSError, GnomonError) as error:
        log.info("the catalog of %s is not kept: %s", readable(path.parent.parent), error)


def _table(rows: Sequence[dict[str, Any]], columns: dict[str, str]) -> Table:
    import pyarrow as pa

    kinds = {
        "string": pa.string(),
        "strings": pa.list_(pa.string()),
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "time": pa.timestamp("us"),
    }
    return pa.Table.from_pylist(list(rows), schema=pa.schema([(name, kinds[kind]) for name, kind in columns.items()]))


def _typed(table: Table) -> Table:
    """The table with text where a run's name, model or scheme stands, though all be missing."""
    import pyarrow as pa

    for name in ("run", "model", "scheme"):
        table = table.set_column(table.column_names.index(name), name, table.column(name).cast(pa.string()))
    return table.replace_schema_metadata(None)


def _stacked(tables: list[Table]) -> Table:
    """Tables one below the other; a column that some lack is NULL there, and one of different kinds is text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        kinds: dict[str, set[bool]] = {}
        for field in (field for table in tables for field in table.schema):
            kinds.setdefault(field.name, set()).add(pa.types.is_integer(field.type) or pa.types.is_floating(field.type))
        mixed = {name for name, found in kinds.items() if len(found) > 1}
        for index, table in enumerate(tables):
            for name in mixed & set(table.column_names):
                table = table.set_column(table.column_names.index(name), name, pc.cast(table.column(name), pa.string()))
            tables[index] = table
        return pa.concat_tables(tables, promote_options="permissive")


def _by_run(table: Table) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        found.setdefault(row["run"], []).append(row)
    return found


def _first_line(error: BaseException) -> str:
    text = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return text.strip().rstrip(".") + "."
