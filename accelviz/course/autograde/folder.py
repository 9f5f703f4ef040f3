"""A course folder as nbgrader knows it, and how nbgrader is called on it without its surprises."""

from __future__ import annotations

import contextlib
import glob
import logging
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelviz.course.autograde.assignments import Assignment, find_assignments
from accelviz.course.autograde.needs import need
from accelviz.errors import ArgumentError

CONFIGURATION = '''\
"""nbgrader's settings for this course. `accelviz assignments` and the formgrader both read them."""

from pathlib import Path

from accelviz.course.autograde.execute import PREPROCESSORS

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "accelviz"
c.CourseDirectory.root = str(Path(__file__).resolve().parent)

# Submissions run in a sandbox, from the formgrader's button too. docs/instructors.md says what it
# holds back and what it does not.
c.Autograde.autograde_preprocessors = PREPROCESSORS
c.SandboxedExecute.cell_seconds = 60.0
c.SandboxedExecute.seconds = 600.0
c.SandboxedExecute.memory_gib = 4.0

# Hidden tests draw their random graphs with this number: the course's own, as the solutions and the
# hidden tests are no secret. Another number changes the graphs, not what is right.
c.SandboxedExecute.seed = {seed}
'''


@dataclass(frozen=True)
class Course:
    """A course folder.

    Parameters
    ----------
    root : Path
        Holds `nbgrader_config.py`, `gradebook.db`, and a folder for each step: `source`, `release`,
        `submitted/<student>/<assignment>`, `checked` (what was graded: the submissions, repaired
        where that was needed) and `autograded`.
    """

    root: Path

    def step(self, step: str, student: str = ".", assignment: str = "") -> Path:
        """Return a folder of a step."""
        return self.root / step / student / assignment

    @property
    def database(self) -> str:
        """URL of the gradebook."""
        return f"sqlite:///{self.root.resolve() / 'gradebook.db'}"

    def assignments(self) -> dict[str, Assignment]:
        """Return the course's assignments.

        Raises
        ------
        ArgumentError
            If this is no course folder.
        """
        if not (self.root / "source").is_dir():
            raise ArgumentError(
                str(self.root),
                "it is no course folder: there is no source/ in it",
                "one made by `accelviz assignments release --course FOLDER`",
            )
        return find_assignments(self.root / "source")

    def check(self) -> None:
        """Look whether nbgrader can work here.

        Raises
        ------
        ArgumentError
            If it would not find the folder, or its gradebook cannot be opened.
        """
        path = str(self.root.resolve())
        if glob.escape(path) != path:
            raise ArgumentError(path, "nbgrader takes no path with [, ], * or ?", "another folder")
        if (self.root / "gradebook.db").exists():
            try:
                with self.gradebook():
                    pass
            except Exception as error:
                reason = first_line(getattr(error, "orig", error))
                where = str(self.root / "gradebook.db")
                raise ArgumentError(where, reason, "nbgrader's gradebook") from error

    def configuration(self, assignment: str) -> Any:
        """Return nbgrader's settings: those of `nbgrader_config.py`, for one assignment.

        Raises
        ------
        ArgumentError
            If that file raises an error.
        """
        need("nbgrader", "course")
        from traitlets.config import Config, PyFileConfigLoader

        configuration = Config()
        if (self.root / "nbgrader_config.py").is_file():
            loader = PyFileConfigLoader("nbgrader_config.py", str(self.root))
            try:
                configuration = loader.load_config()
            except Exception as error:  # it is a program
                where, reason = self.root / "nbgrader_config.py", f"{type(error).__name__}: {error}"
                raise ArgumentError(str(where), reason, "the settings of a course") from error
        configuration.CourseDirectory.root = str(self.root.resolve())
        configuration.CourseDirectory.db_url = self.database
        configuration.CourseDirectory.assignment_id = assignment
        return configuration

    def seed(self) -> int:
        """Return the course's seed of all hidden graphs.

        Raises
        ------
        ArgumentError
            If it is no integer of at least 0.
        """
        seed = self.configuration("").SandboxedExecute.get("seed", 0)
        if not isinstance(seed, int) or seed < 0:
            where = str(self.root / "nbgrader_config.py")
            raise ArgumentError(where, f"the seed is {seed!r}", "an integer of at least 0")
        return seed

    def run(self, converter: type, configuration: Any) -> str:
        """Run one of nbgrader's steps.

        Returns
        -------
        str
            What went wrong, "" if nothing.
        """
        from nbgrader.coursedir import CourseDirectory

        self._make_gradebook()
        log = logging.Logger("accelviz.course")
        heard = _Heard()
        log.addHandler(heard)
        with quiet():
            folder = CourseDirectory(config=configuration, log=log)
            try:
                converter(coursedir=folder, config=configuration, log=log).start()
            except Exception as error:  # nbgrader's own exception says only where to look
                return heard.reason() or f"{type(error).__name__}: {first_line(error)}"
        return ""

    @contextlib.contextmanager
    def gradebook(self) -> Iterator[Any]:
        """Open nbgrader's gradebook."""
        from nbgrader.api import Gradebook

        self._make_gradebook()
        with quiet(), Gradebook(self.database) as gradebook:
            yield gradebook

    def _make_gradebook(self) -> None:
        """Make an empty gradebook where there is none, as nbgrader does.

        It would start the program `alembic` to learn one number, which takes seconds.
        """
        if (self.root / "gradebook.db").exists():
            return
        import nbgrader.api
        import sqlalchemy
        from alembic.migration import MigrationContext
        from alembic.script import ScriptDirectory

        steps = ScriptDirectory(str(Path(nbgrader.api.__file__).with_name("alembic")))
        engine = sqlalchemy.create_engine(self.database)
        with engine.begin() as connection:
            nbgrader.api.Base.metadata.create_all(connection)
            MigrationContext.configure(connection).stamp(steps, "head")
        engine.dispose()


class _Heard(logging.Handler):
    """Keeps the errors that nbgrader logs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())

    def reason(self) -> str:
        """Return what the first exception says, else the first message."""
        for message in self.messages:
            if message.startswith("Traceback"):
                lines = message.strip().splitlines()
                named = [line for line in lines if re.match(r"[A-Za-z_][\w.]*(:|$)", line)]
                return (named or lines)[-1]
        return self.messages[0].splitlines()[0] if self.messages else ""


def first_line(error: object) -> str:
    """Return the first line of an exception's text."""
    return next(iter(str(error).splitlines()), "")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings of nbgrader's own use of SQLAlchemy."""
    from sqlalchemy.exc import SAWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)
        yield
