"""The configuration file: which one it is, and what it says.

The file is YAML. Its keys may be nested, flat, or both:

    parallelism.default: 4
    execution:
      checkpointing:
        interval: 10 s
        dir: file:///data/checkpoints

Values are kept as they are written, so `10 s`, `"10 s"` and `10000` need no rules of YAML's own. A
mistake is an error of one line that names the file and the line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from penstock.common.config_layers import Setting
from penstock.common.config_options import canonical_key, check_value
from penstock.common.flink_keys import is_present, keys_of_type
from penstock.common.map_values import format_map
from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    from yaml import MarkedYAMLError, Node

FILE_NAMES = ("penstock.yaml", "config.yaml", "flink-conf.yaml")
DIRECTORY_VARIABLES = ("PENSTOCK_CONF_DIR", "FLINK_CONF_DIR")

_DEEPEST = 32
_NULL = "tag:yaml.org,2002:null"


def find_config_file(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The file that applies when none is named.

    A directory that a variable names must hold one; the working directory may.
    """
    for variable in DIRECTORY_VARIABLES:
        if environ.get(variable):
            found = _file_in(Path(environ[variable]))
            if found is None:
                raise ConfigurationError(
                    f"{variable} is {environ[variable]}, which holds no {_either(FILE_NAMES)}"
                )
            return found
    return _file_in(Path())


def _file_in(directory: Path) -> Path | None:
    return next((file for name in FILE_NAMES if (file := directory / name).is_file()), None)


def read_config_file(path: Path) -> dict[str, Setting]:
    """What the file sets, by canonical key; each setting's origin is `file:line`."""
    settings: dict[str, Setting] = {}
    spelled: dict[str, str] = {}
    for entry in _entries(path):
        origin = f"{path}:{entry.line}"
        try:
            check_value(entry.key, entry.value)
        except ConfigurationError as error:
            raise ConfigurationError(f"{origin}: {error}{_whose(path)}") from error
        key = canonical_key(entry.key)
        before = settings.setdefault(key, Setting(entry.value, origin))
        other = spelled.setdefault(key, entry.key)
        if before.value != entry.value and is_present(entry.key) == is_present(other):
            raise ConfigurationError(
                f"{origin}: {entry.key} is {entry.value!r} here and {before.value!r} in line "
                f"{before.origin.rpartition(':')[2]}"
            )
        # Flink's present spelling wins over an older one, wherever they stand.
        if is_present(entry.key) and not is_present(other):
            settings[key], spelled[key] = Setting(entry.value, origin), entry.key
    return settings


def _whose(path: Path) -> str:
    # A working directory often has a config.yaml of something else.
    if path == Path("config.yaml"):
        return " (if this file is not Penstock's, name another with --config or PENSTOCK_CONF_DIR)"
    return ""


class _Entry(NamedTuple):
    key: str
    value: str
    line: int


def _entries(path: Path) -> Iterator[_Entry]:
    import yaml  # here, because most programs have no file and need not wait for it

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigurationError(f"{path}: cannot be read: {reason}") from error
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        raise ConfigurationError(_not_yaml(path, text, error)) from error
    except yaml.YAMLError as error:
        reason = str(error).split("\n", 1)[0]
        raise ConfigurationError(f"{path}: not YAML: {reason}") from error
    if root is None:
        return
    if not isinstance(root, yaml.MappingNode):
        raise ConfigurationError(f"{path}:{_line(root)}: expected lines of the form `key: value`")
    yield from _flat(path, root, (), 0)


def _flat(path: Path, node: Node, prefix: tuple[str, ...], depth: int) -> Iterator[_Entry]:
    import yaml

    if isinstance(node, yaml.MappingNode):
        if depth > _DEEPEST:
            raise ConfigurationError(f"{path}:{_line(node)}: nested too deeply")
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ConfigurationError(f"{path}:{_line(key)}: a key must be a single word")
            name = ".".join((*prefix, key.value))
            if isinstance(value, yaml.ScalarNode):
                yield _scalar(path, (*prefix, key.value), value, _line(key))
            elif isinstance(value, yaml.SequenceNode) and name in keys_of_type("List"):
                yield _Entry(name, ";".join(map(_text, value.value)), _line(key))
            elif isinstance(value, yaml.MappingNode) and name in keys_of_type("Map"):
                entries = {_text(k): _text(v) for k, v in value.value}
                yield _Entry(name, format_map(entries), _line(key))
            else:
                yield from _flat(path, value, (*prefix, key.value), depth + 1)
    else:
        raise ConfigurationError(
            f"{path}:{_line(node)}: {'.'.join(prefix)}: expected a single value, not a list"
        )


def _text(node: Node) -> str:
    """What stands in a file for one item of a list or a map of Flink's."""
    import yaml

    if isinstance(node, yaml.MappingNode):
        return ",".join(f"{_text(key)}:{_text(value)}" for key, value in node.value)
    return str(node.value)


def _scalar(path: Path, names: tuple[str, ...], node: Node, line: int) -> _Entry:
    key = ".".join(names)
    if node.tag == _NULL:
        raise ConfigurationError(f"{path}:{line}: {key} has no value")
    return _Entry(key, str(node.value), line)


def _not_yaml(path: Path, text: str, error: MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return f"{path}: not YAML: {error.problem}"
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    blank = line[: len(line) - len(line.lstrip())]
    if "\t" in blank or line[mark.column : mark.column + 1] == "\t":
        return f"{path}:{mark.line + 1}: a tab; YAML is indented with spaces"
    return f"{path}:{mark.line + 1}: not YAML: {error.problem}"


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _either(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
