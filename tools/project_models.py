"""The models that belong to the project, for the programs that write its documents."""

import subprocess
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent


def project_models() -> list[str]:
    """Returns the names of the models, such as fork_server, without those that git does not know:
    a model of the user's own has no place in the documents until it is added."""
    command = ["git", "-C", str(PROJECT), "ls-files", "--others", "--", "*_server.c"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    own = set(done.stdout.split()) if done.returncode == 0 else set()
    return sorted(path.stem for path in PROJECT.glob("*_server.c") if path.name not in own)
