"""Models on the Hugging Face hub: `unordinal.load("hf:owner/name")`, and what `run.push_to_hub` sends.

Only config.json and model.safetensors are ever fetched: no file that could run code.
"""

import re
from pathlib import Path
from typing import Any

PREFIX = "hf:"
FILES = ("config.json", "model.safetensors")
NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def is_hub(path: object) -> bool:
    return str(path).startswith(PREFIX)


def hub() -> Any:
    """Return the package huggingface_hub."""
    try:
        import huggingface_hub
        from huggingface_hub.utils import logging
    except ModuleNotFoundError as error:
        raise ValueError("the hub needs a package; install it with: pip install 'unordinal[hub]'") from error
    logging.set_verbosity_error()  # the command line prints errors itself
    return huggingface_hub


def fetched(path: object) -> Path:
    """Fetch a model, unless it is in the hub's cache, and return its folder.

    Args:
        path: "hf:owner/name", or "hf:owner/name@revision".
    """
    name, _, revision = str(path).removeprefix(PREFIX).partition("@")
    check_name(name)
    found = hub()
    from huggingface_hub import errors

    try:
        paths = [Path(found.hf_hub_download(name, file, revision=revision or None)) for file in FILES]
    except errors.LocalEntryNotFoundError as error:
        raise ValueError(f"hf:{name} cannot be fetched, and is not in the cache; is there a network?") from error
    except errors.EntryNotFoundError as error:
        raise ValueError(f"hf:{name} is not a model of unordinal: expected {' and '.join(FILES)}") from error
    except errors.RevisionNotFoundError as error:
        raise ValueError(f"hf:{name} has no revision {revision!r}") from error
    except errors.RepositoryNotFoundError as error:
        raise ValueError(f"there is no model hf:{name}, or it is private and needs `hf auth login`") from error
    except (OSError, errors.HfHubHTTPError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"hf:{name} cannot be fetched: {reason}") from error
    return paths[0].parent


def check_name(name: str) -> None:
    """Raise a ValueError for a name that the hub cannot have."""
    if not NAME.fullmatch(name) or ".." in name:
        raise ValueError(f"expected a model of the hub as owner/name, got {name!r}")


def push(folder: Path, name: str, *, private: bool = False, token: str | None = None) -> str:
    """Send the files of a folder to the hub as a model, which is made if it is not there; return its address."""
    check_name(name)
    found = hub()
    from huggingface_hub import errors

    api = found.HfApi(token=token)
    try:
        api.create_repo(name, private=private, exist_ok=True)
        files = [*FILES, "README.md"]
        done = api.upload_folder(
            repo_id=name, folder_path=folder, allow_patterns=files, commit_message="Add a model of unordinal"
        )
    except (OSError, errors.HfHubHTTPError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"hf:{name} was not sent: {reason}") from error
    return str(done)
