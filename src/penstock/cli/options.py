"""The options that commands share, and the settings they amount to."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from penstock.common.config_file import find_config_file, read_config_file
from penstock.common.config_layers import Setting, Settings
from penstock.common.config_options import (
    MASTER,
    PARALLELISM,
    PYTHON_ARCHIVES,
    PYTHON_EXECUTABLE,
    PYTHON_FILES,
    PYTHON_REQUIREMENTS,
    Option,
    canonical_key,
    check_value,
)
from penstock.errors import ConfigurationError

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Asked:
    """What the options say that every command about a program has."""

    definitions: tuple[str, ...]
    parallelism: int | None
    master: str | None
    config_file: Path | None
    pyflink: bool
    job: Path | None
    arguments: tuple[str, ...]

    @property
    def program(self) -> Path:
        """The file of the program, for commands that need one."""
        assert self.job is not None
        return self.job

    def file(self) -> Settings:
        """What the configuration file says."""
        return file_settings(self.config_file)

    def overrides(self) -> dict[str, Setting]:
        """What the command line sets."""
        return overriding_settings(self.definitions, self.parallelism, self.master)

    def again(self) -> list[str]:
        """The same options, to be given to the same command."""
        options = [part for definition in self.definitions for part in ("-D", definition)]
        for name, value in (
            ("--parallelism", self.parallelism),
            ("--master", self.master),
            ("--config", self.config_file),
        ):
            if value is not None:
                options += [name, str(value)]
        return [*options, "--pyflink"] if self.pyflink else options


def about_a_program(required: bool = True) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A command about a program: called with an `Asked`, and with the options of its own."""

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(function)
        def collect(**given: Any) -> int:
            python_file = given.pop("python_file")
            if python_file is not None:
                # What stands where JOB would is an argument of the program then.
                first = () if given["job"] is None else (given["job"],)
                given["job"], given["arguments"] = python_file, (*first, *given["arguments"])
            given["job"] = _checked_job(given["job"], required)
            given["definitions"] += _of_python(given)
            shared = {name: given.pop(name) for name in Asked.__dataclass_fields__}
            return function(Asked(**shared), **given)

        return setting_options(pyflink_option(python_options(job_argument(collect))))

    return decorate


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class _Program(click.ParamType):  # type: ignore[type-arg]
    """The file of a program; one of Java's is refused with what to give instead."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value).endswith(".jar"):
            self.fail(
                f"{value} is a program of Java's: give the Python file of the job, for example "
                f"`penstock run [OPTIONS] {Path(value).stem}.py`",
                param,
                ctx,
            )
        return _FILE.convert(value, param, ctx)


def job_argument(function: F) -> F:
    """JOB and what follows it, which is the program's own."""
    function = click.argument("arguments", nargs=-1, type=click.UNPROCESSED)(function)
    # Whether JOB is the program is known when all options are: -py may name the program.
    return click.argument("job", required=False)(function)


def _checked_job(job: str | None, required: bool) -> Path | None:
    context = click.get_current_context()
    if job is None:
        if required:
            raise click.MissingParameter(ctx=context, param_hint="'JOB'", param_type="argument")
        return None
    try:
        file: Path = _Program().convert(job, None, context)
    except click.BadParameter as error:
        error.param_hint = "'JOB'"
        raise
    return file


_OF_PYTHON: dict[str, tuple[tuple[str, str], Option[Any]]] = {
    "py_files": (("-pyfs", "--pyFiles"), PYTHON_FILES),
    "py_archives": (("-pyarch", "--pyArchives"), PYTHON_ARCHIVES),
    "py_requirements": (("-pyreq", "--pyRequirements"), PYTHON_REQUIREMENTS),
    "py_executable": (("-pyexec", "--pyExecutable"), PYTHON_EXECUTABLE),
}
"""Options of Flink's command line that are keys, too."""

_WITHOUT_A_KEY = {
    ("-pym", "--pyModule"): "give the file of the module: -py FILE",
    ("-pyclientexec", "--pyClientExecutable"): (
        "the program is started by the Python that Penstock is installed in"
    ),
}
"""Options of Flink's for Python that there are not. Without them `-pym` would be `-p ym`."""


def python_options(function: F) -> F:
    """The options with which Flink's command line is given a Python program."""
    for name, (spellings, option) in reversed(_OF_PYTHON.items()):
        text = f"The key {option.key}."
        function = click.option(*spellings, name, metavar="VALUE", help=text)(function)
    for spellings, reason in _WITHOUT_A_KEY.items():
        function = click.option(
            *spellings, callback=_refused(reason), expose_value=False, hidden=True
        )(function)
    text = "The program, as Flink's command line is given it; instead of JOB."
    return click.option("-py", "--python", "python_file", metavar="FILE", help=text)(function)


def _refused(reason: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def refuse(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            raise click.UsageError(f"there is no {parameter.opts[0]}: {reason}")

    return refuse


def _of_python(given: dict[str, Any]) -> tuple[str, ...]:
    """What those options say, as -D says it; takes them out of `given`."""
    said = ((option, given.pop(name)) for name, (_, option) in _OF_PYTHON.items())
    return tuple(f"{option.key}={value}" for option, value in said if value is not None)


def setting_options(function: F) -> F:
    """-D, -p, --master and --config."""
    for option in (
        click.option(
            "--config", "config_file", type=_FILE, metavar="FILE", help="The configuration file."
        ),
        click.option("--master", metavar="URL", help="The Spark master; the key spark.master."),
        click.option(
            "-p",
            "--parallelism",
            type=click.IntRange(min=1),
            help="The parallelism of operators that set none; the key parallelism.default.",
        ),
        click.option(
            "-D",
            "definitions",
            multiple=True,
            metavar="KEY=VALUE",
            help="A configuration value; may be repeated. It wins over the program and the file.",
        ),
    ):
        function = option(function)
    return function


pyflink_option = click.option(
    "--pyflink", is_flag=True, help="Let the program import pyflink and get penstock."
)


def file_settings(config_file: Path | None) -> Settings:
    """What the named file says, or the one that is found."""
    path = config_file or find_config_file()
    return read_config_file(path) if path is not None else {}


def overriding_settings(
    definitions: Sequence[str], parallelism: int | None, master: str | None
) -> dict[str, Setting]:
    """What the command line sets. An option of its own wins over -D, and a later -D over -D."""
    settings: dict[str, Setting] = {}
    for definition in definitions:
        key, _, value = definition.partition("=")
        if not key or not value:
            raise click.UsageError(f"-D {definition}: expected KEY=VALUE")
        try:
            check_value(key, value)
        except ConfigurationError as error:
            raise click.UsageError(f"-D {definition}: {error}") from error
        settings[canonical_key(key)] = Setting(value, "-D")
    if parallelism is not None:
        settings[PARALLELISM.key] = Setting(str(parallelism), "-p")
    if master is not None:
        settings[MASTER.key] = Setting(master, "--master")
    return settings
