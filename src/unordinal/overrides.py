"""Change settings of a configuration by their names."""

import dataclasses
from dataclasses import replace
from typing import Any, get_args, get_type_hints

from unordinal.config import BUDGET, RunConfig, from_plain, paths_of
from unordinal.names import check_known, unknown


def with_settings(config: RunConfig, settings: dict[str, Any]) -> RunConfig:
    """Return a configuration with some settings changed, each by its name or, if several have it, its dotted name.

    >>> from unordinal.recipes import configured
    >>> with_settings(configured("arm"), {"lr": 0.5, "net.width": 64}).model.net.width
    64
    """
    if any(settings.get(name) is not None for name in BUDGET):  # the budget that is given replaces the recipe's
        config = replace(config, train=replace(config.train, steps=None, minutes=None, epochs=None))
    return changed_settings(config, settings)


def changed_settings(config: Any, settings: dict[str, Any]) -> Any:
    """Return nested dataclasses with some settings changed, each by its name or dotted name; see `with_settings`."""
    networks = {name: value for name, value in settings.items() if isinstance(value, str) and is_network(config, name)}
    for name, value in networks.items():  # they choose which other settings there are
        config = changed(config, {tuple(path_of(config, name).split(".")): value})
    rest = {name: value for name, value in settings.items() if name not in networks}
    return changed(config, {tuple(path_of(config, name).split(".")): value for name, value in rest.items()})


def is_network(config: Any, name: str) -> bool:
    """Return whether a name, if it is that of a setting, stands for nested settings."""
    found = [value for path, value in paths_of(config).items() if path == name or path.endswith(f".{name}")]
    return len(found) == 1 and dataclasses.is_dataclass(found[0])


def path_of(config: Any, name: str) -> str:
    """Return the dotted name of the one setting that a name, or the end of a dotted name, stands for."""
    known = [path for path in paths_of(config) if "." in path or not isinstance(config, RunConfig)]
    fitting = sorted(path for path in known if path == name or path.endswith(f".{name}"))
    if not fitting:
        listed = ", ".join(sorted(known)) or "none"
        raise unknown("setting", name, [path.rpartition(".")[2] for path in known], listed_by=f"known: {listed}")
    if len(fitting) > 1:
        raise ValueError(f"several settings are called {name!r}: {', '.join(fitting)}; give the whole name")
    return fitting[0]


def changed(settings: Any, values: dict[tuple[str, ...], Any]) -> Any:
    """Return nested dataclasses with the values at some paths changed, all at once, since some are checked together."""
    new = {path[0]: changed_value(settings, path[0], value) for path, value in values.items() if len(path) == 1}
    for name in {path[0] for path in values if len(path) > 1}:
        below = {path[1:]: value for path, value in values.items() if path[0] == name and len(path) > 1}
        new[name] = changed(getattr(settings, name), below)
    return replace(settings, **new) if new else settings


def changed_value(settings: Any, name: str, value: Any) -> Any:
    """Return the new value of a setting, checked against its type."""
    if dataclasses.is_dataclass(value):
        return value
    old, kind = getattr(settings, name), get_type_hints(type(settings))[name]
    if isinstance(value, str) and dataclasses.is_dataclass(old):  # a network, say, by the name of its class
        known = {choice.__name__.lower(): choice for choice in get_args(kind) or (kind,)}
        check_known(name, value, known)
        shared = {f.name for f in dataclasses.fields(known[value])} & vars(old).keys()
        return known[value](**{key: getattr(old, key) for key in shared})
    return from_plain(kind, value, name)
