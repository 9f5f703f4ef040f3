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
from accelviz.course.autograde.common import first_line, need
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
    """A course folder."""

    #: Holds `nbgrader_config.py`, `gradebook.db`, and a folder for each step: `source`, `release`,
    #: `submitted/<student>/<assignment>`, `checked` (what nbgrader gets: the submissions,
    #: repaired where that was needed, after they were run with hidden tests) and `autograded`.
    root: Path

    def step(self, step: str, student: str = ".", assignment: str = "") -> Path:
        """Return a folder of a step."""
        return self.root / step / student / assignment

    @property
    def database(self) -> str:
        """URL of the gradebook."""
        return f"sqlite:///{self.root.resolve() / 'gradebook.db'}"

    def assignments(self) -> dict[str, Assignment]:
        """Return the course's assignments; ArgumentError if this is no course folder."""
        if not (self.root / "source").is_dir():
            raise ArgumentError(
                str(self.root),
                "it is no course folder: there is no source/ in it",
                "one made by `accelviz assignments release --course FOLDER`",
            )
        return find_assignments(self.root / "source")

    def check(self) -> None:
        """Raise ArgumentError if nbgrader would not find the folder, or open its gradebook."""
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

        ArgumentError if that file raises an error.
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
        """Return the course's seed of all hidden graphs: an integer from 0 on, or ArgumentError."""
        seed = self.configuration("").SandboxedExecute.get("seed", 0)
        if not isinstance(seed, int) or seed < 0:
            where = str(self.root / "nbgrader_config.py")
            raise ArgumentError(where, f"the seed is {seed!r}", "an integer of at least 0")
        return seed

    def run(self, converter: type, configuration: Any) -> str:
        """Run one of nbgrader's steps; return what went wrong, "" if nothing."""
        from nbgrader.coursedir import CourseDirectory
        from nbgrader.utils import capture_log

        self._make_gradebook()
        log = logging.Logger("accelviz.course", logging.ERROR)
        options = {"config": configuration, "log": log}
        with quiet():
            outcome = capture_log(converter(coursedir=CourseDirectory(**options), **options))
        return "" if outcome["success"] else _reason(outcome)

    @contextlib.contextmanager
    def gradebook(self) -> Iterator[Any]:
        """Open nbgrader's gradebook."""
        from nbgrader.api import Gradebook

        self._make_gradebook()
        with quiet(), Gradebook(self.database) as gradebook:
            yield gradebook

    def _make_gradebook(self) -> None:
        """Make an empty gradebook where there is none: nbgrader wants `alembic` on the PATH."""
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


def _reason(outcome: dict[str, Any]) -> str:
    """Return what the first exception says, else the first error that nbgrader logged."""
    log = outcome.get("log") or outcome["error"]  # its last exception says only where to look
    traceback = log.partition("Traceback")[2].partition("\n[ERROR]")[0]
    named = re.findall(r"^ {4}([A-Za-z_][\w.]*(?::.*)?)$", traceback, re.M)
    return named[-1] if named else first_line(log).removeprefix("[ERROR] ")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings of nbgrader's own use of SQLAlchemy."""
    from sqlalchemy.exc import SAWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)
        yield
