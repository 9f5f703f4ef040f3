"""A course folder: its layout, nbgrader's configuration and gradebook, and calls of nbgrader."""

from __future__ import annotations

import contextlib
import glob
import logging
import warnings
from collections.abc import Iterable, Iterator
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

    #: Contains `nbgrader_config.py`, `gradebook.db`, and a folder for each step of nbgrader:
    #: `source`, `release`, `submitted/<student>/<assignment>` and `autograded` (after repair and
    #: execution with the hidden tests).
    root: Path

    def step(self, step: str, student: str = ".", assignment: str = "") -> Path:
        """Return the folder of a step, of a student in it, or of a student's assignment."""
        return self.root / step / student / assignment

    @property
    def database(self) -> str:
        """URL of the gradebook."""
        return f"sqlite:///{self.root.resolve() / 'gradebook.db'}"

    def assignments(self) -> dict[str, Assignment]:
        """Return the course's assignments; raises ArgumentError if this is no course folder."""
        if not (self.root / "source").is_dir():
            raise ArgumentError(
                str(self.root),
                "it is no course folder: there is no source/ in it",
                "one made by `accelviz assignments release --course FOLDER`",
            )
        return find_assignments(self.root / "source")

    def check(self) -> None:
        """Raise ArgumentError if nbgrader cannot use the folder's path or its gradebook."""
        path = str(self.root.resolve())
        if glob.escape(path) != path:
            raise ArgumentError(path, "nbgrader takes no path with [, ], * or ?", "another folder")
        if (self.root / "gradebook.db").exists():
            need("nbgrader", "course")
            try:
                with self.gradebook():
                    pass
            except Exception as error:
                reason = first_line(getattr(error, "orig", error))
                where = str(self.root / "gradebook.db")
                raise ArgumentError(where, reason, "nbgrader's gradebook") from error

    def configuration(self, assignment: str) -> Any:
        """Return nbgrader's configuration from `nbgrader_config.py`, for one assignment.

        Raises ArgumentError if executing that file raises an exception.
        """
        need("nbgrader", "course")
        from traitlets.config import Config, PyFileConfigLoader

        configuration = Config()
        if (self.root / "nbgrader_config.py").is_file():
            loader = PyFileConfigLoader("nbgrader_config.py", str(self.root))
            try:
                configuration = loader.load_config()
            except Exception as error:
                where, reason = self.root / "nbgrader_config.py", f"{type(error).__name__}: {error}"
                raise ArgumentError(str(where), reason, "the settings of a course") from error
        configuration.CourseDirectory.root = str(self.root.resolve())
        configuration.CourseDirectory.db_url = self.database
        configuration.CourseDirectory.assignment_id = assignment
        return configuration

    def seed(self) -> int:
        """Return the course's seed of the hidden tests; raises ArgumentError if it is not valid."""
        seed = self.configuration("").SandboxedExecute.get("seed", 0)
        if not isinstance(seed, int) or seed < 0:
            where = str(self.root / "nbgrader_config.py")
            raise ArgumentError(where, f"the seed is {seed!r}", "an integer of at least 0")
        return seed

    def preprocess(self, kinds: Iterable[Any], notebook: Any, name: str, student: str = ".") -> Any:
        """Let nbgrader's preprocessors change an assignment's notebook and the gradebook."""
        names = {"student": student, "assignment": name, "notebook": name}
        resources = {"nbgrader": {**names, "db_url": self.database}}
        configuration = self.configuration(name)
        with quiet():
            for kind in kinds:
                notebook, resources = kind(config=configuration).preprocess(notebook, resources)
        return notebook

    @contextlib.contextmanager
    def gradebook(self) -> Iterator[Any]:
        """Open nbgrader's gradebook."""
        import nbgrader.api
        from alembic.script import ScriptDirectory

        # nbgrader itself needs `alembic` on the PATH to make a gradebook
        scripts = ScriptDirectory(str(Path(nbgrader.api.__file__).with_name("alembic")))
        nbgrader.api.get_alembic_version = scripts.get_current_head
        with quiet(), nbgrader.api.Gradebook(self.database) as gradebook:
            yield gradebook


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress SQLAlchemy's warnings about nbgrader, and what nbgrader logs of errors it raises."""
    from sqlalchemy.exc import SAWarning

    log = logging.getLogger("tornado.application")
    disabled, log.disabled = log.disabled, True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)
        try:
            yield
        finally:
            log.disabled = disabled
