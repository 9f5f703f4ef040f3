"""The programs that browser tests start: a JupyterLab server, and a Chromium without internet."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[2]

#: Seconds until any wait fails; long, because the machine may be small and busy.
PATIENCE = 120

#: Programs to try, if `ACCELVIZ_CHROMIUM` is not set.
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser() -> str | None:
    """Return the path of a Chromium, or None if there is none."""
    named = os.environ.get("ACCELVIZ_CHROMIUM")
    if named:
        path = shutil.which(named)
        if path is None:
            raise FileNotFoundError(f"ACCELVIZ_CHROMIUM names {named}, which is no program")
        return path
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def poll(ready: Callable[[], Any], awaited: str, seconds: float = PATIENCE) -> Any:
    """Return the first truthy result of `ready`; raise TimeoutError if there is none in time."""
    end = time.monotonic() + seconds
    while not (answer := ready()):
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds:.0f} s for {awaited}")
        time.sleep(0.05)
    return answer


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A JupyterLab server with its settings, kernels and notebooks in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "notebooks"
        self.token = secrets.token_hex(16)
        self.process: subprocess.Popen[bytes] | None = None
        self.url = ""
        # Ignore a proxy that the environment may set.
        self._open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open

    def start(self) -> Server:
        self._write_settings()
        command = [
            *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
            f"--ServerApp.root_dir={self.root}",
            "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={free_port()}",
            "--ServerApp.terminals_enabled=False",
            # Makes `jupyterapp` available to the tests, which run commands through it.
            "--LabApp.expose_app_in_browser=True",
            # The default extension manager queries the package index.
            "--LabApp.extension_manager=readonly",
            "--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate",
            "--LabApp.news_url=",
        ]
        with (self.folder / "server.log").open("wb") as log:
            self.process = subprocess.Popen(
                command,
                cwd=self.root,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        poll(self._is_ready, "JupyterLab to start")
        return self

    def stop(self) -> None:
        """Stop the server and every process that it started; kill those that do not end."""
        if self.process is None:
            return
        import psutil

        try:
            children = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            children = []
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        _, alive = psutil.wait_procs(children, timeout=2)
        for child in alive:
            child.kill()
        psutil.wait_procs(alive, timeout=5)
        self.process = None

    def log(self) -> str:
        return (self.folder / "server.log").read_text("utf-8", "replace")

    def ask(self, path: str, method: str = "GET") -> Any:
        """Send a request to the server's REST interface; return the decoded answer."""
        request = urllib.request.Request(
            f"{self.url}api/{path}", headers={"Authorization": f"token {self.token}"}, method=method
        )
        with self._open(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or b"null")

    def end_kernel(self, path: str) -> None:
        """End the kernel of a notebook, if it has one."""
        for session in self.ask("sessions"):
            if session["path"] == path:
                self.ask(f"sessions/{session['id']}", "DELETE")

    def kernel_process(self, kernel: str) -> Any:
        """Return the `psutil.Process` of the kernel of this id."""
        import psutil

        assert self.process is not None
        for child in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if any(kernel in word for word in child.cmdline()):
                    return child
            except (psutil.NoSuchProcess, psutil.ZombieProcess):
                continue
        raise LookupError(f"no process has kernel {kernel}")

    def write_notebook(self, name: str) -> None:
        """Write a notebook of one code cell into the server's folder."""
        import nbformat

        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell("0")], metadata={"kernelspec": kernel}
        )
        nbformat.write(notebook, self.root / f"{name}.ipynb")

    def _is_ready(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(f"JupyterLab ended with {self.process.returncode}:\n{self.log()}")
        # The server chooses another port if the given one is taken.
        info = self.folder / "runtime" / f"jpserver-{self.process.pid}.json"
        try:
            self.url = f"http://127.0.0.1:{json.loads(info.read_text())['port']}/"
            return "started" in self.ask("status")
        except (OSError, ValueError, urllib.error.URLError):
            return False

    def _environment(self) -> dict[str, str]:
        removed = ("JUPYTER", "IPYTHON", "COVERAGE", "PYTEST")
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(removed)
        }
        return environment | {
            "IPYTHONDIR": str(self.folder / "ipython"),
            "JUPYTER_CONFIG_DIR": str(self.folder / "config"),
            "JUPYTER_DATA_DIR": str(self.folder / "data"),
            "JUPYTER_PATH": str(self.folder / "data"),
            "JUPYTER_RUNTIME_DIR": str(self.folder / "runtime"),
            "JUPYTER_PLATFORM_DIRS": "1",
            "JUPYTER_TOKEN": self.token,
            "PYTHONPATH": os.pathsep.join(
                filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])
            ),
        }

    def _write_settings(self) -> None:
        files = {
            "config/labconfig/page_config.json": {
                # Its dialog about news would cover the page.
                "disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}
            },
            "data/kernels/python3/kernel.json": {
                "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
                "display_name": "Python 3",
                "language": "python",
            },
        }
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content))
        for name in ("notebooks", "runtime", "ipython"):
            (self.folder / name).mkdir(exist_ok=True)


def launch(playwright: Any, path: str) -> Browser:
    """Start a Chromium that can reach only this machine."""
    return playwright.chromium.launch(
        executable_path=path,
        args=[
            "--disable-dev-shm-usage",
            "--no-proxy-server",
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
        ],
    )
