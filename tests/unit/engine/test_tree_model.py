"""Random operations on the stored tree give the same answers as a plain dictionary."""

import copy
import fnmatch
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast import Client, Settings
from holdfast.errors import HoldfastError

NAMES = ["a", "b", "c.md", "d e.md", "中"]
FOLDER = None
"""The value of a folder in the dictionary. That of a file is the list of its versions."""
Tree = dict[str, list[str] | None]


class RefusedError(Exception):
    """The code of the error that the tree must answer with."""


class TreeModel:
    """Files and folders by their paths, and what was removed, the last one at the end."""

    def __init__(self) -> None:
        self.live: Tree = {}
        self.removed: list[Tree] = []

    def write(self, path: str, text: str, mode: str) -> int:
        self._require_folders(path)
        versions = self.live.get(path, [])
        if path in self.live and mode == "create":
            raise RefusedError("ALREADY_EXISTS")
        if versions is FOLDER:
            raise RefusedError("INVALID_ARGUMENT")
        content = versions[-1] + text if versions and mode == "append" else text
        if not versions or versions[-1] != content:
            self._make_folders(path)
            self.live[path] = versions = [*versions, content]
        return len(versions)

    def mkdir(self, path: str) -> None:
        self._require_folders(path)
        if self.live.get(path, FOLDER) is not FOLDER:
            raise RefusedError("ALREADY_EXISTS")
        self._make_folders(path)
        self.live[path] = FOLDER

    def mv(self, source: str, target: str) -> None:
        self._require(source)
        if source == target:
            return
        self._replace(source, target)
        for path in self._at_or_below(source):
            self.live[target + path[len(source) :]] = self.live.pop(path)

    def cp(self, source: str, target: str) -> int:
        self._require(source)
        if source == target:
            raise RefusedError("INVALID_ARGUMENT")
        self._replace(source, target)
        copied = {target + path[len(source) :]: self.live[path] for path in self._at_or_below(source)}
        self.live |= {path: versions and versions[-1:] for path, versions in copied.items()}
        return sum(versions is not FOLDER for versions in copied.values())

    def rm(self, path: str, recursive: bool) -> int:
        paths = self._at_or_below(path)
        if len(paths) > 1 and not recursive:
            raise RefusedError("FAILED_PRECONDITION")
        if paths:
            self.removed.append({each: self.live.pop(each) for each in paths})
        return len(paths)

    def restore(self, path: str) -> int:
        if path in self.live:
            raise RefusedError("INVALID_ARGUMENT")
        group = next((group for group in reversed(self.removed) if path in group), None)
        if group is None:
            raise RefusedError("NOT_FOUND")
        self._require_folders(path)
        self._make_folders(path)
        restored = [each for each in group if each == path or each.startswith(f"{path}/")]
        self.live |= {each: group.pop(each) for each in restored}
        return len(restored)

    def restore_version(self, path: str, version: int) -> int:
        """Restore a version, after a file that was removed is brought back: both, or neither."""
        before = copy.deepcopy((self.live, self.removed))
        try:
            if path not in self.live:
                self.restore(path)
            return self._restore_version(path, version)
        except RefusedError:
            self.live, self.removed = before
            raise

    def _restore_version(self, path: str, version: int) -> int:
        versions = self.live[path]
        if versions is FOLDER:
            raise RefusedError("INVALID_ARGUMENT")
        if version > len(versions):
            raise RefusedError("NOT_FOUND")
        if version < len(versions):
            self.live[path] = versions = [*versions, versions[version - 1]]
        return len(versions)

    def _replace(self, source: str, target: str) -> None:
        """Remove the file at the target, and make the folders above it."""
        if self.live[source] is FOLDER and target.startswith(f"{source}/"):
            raise RefusedError("INVALID_ARGUMENT")
        if target in self.live and FOLDER in (self.live[source], self.live[target]):
            raise RefusedError("ALREADY_EXISTS")
        self._require_folders(target)
        if target in self.live:
            self.removed.append({target: self.live.pop(target)})
        self._make_folders(target)

    def _require(self, path: str) -> None:
        if path not in self.live:
            raise RefusedError("NOT_FOUND")

    def _require_folders(self, path: str) -> None:
        if any(self.live.get(folder, FOLDER) is not FOLDER for folder in _folders(path)):
            raise RefusedError("FAILED_PRECONDITION")

    def _make_folders(self, path: str) -> None:
        for folder in _folders(path):
            self.live.setdefault(folder, FOLDER)

    def _at_or_below(self, path: str) -> list[str]:
        return sorted(each for each in self.live if each == path or each.startswith(f"{path}/"))


def _folders(path: str) -> list[str]:
    names = path.split("/")
    return ["/".join(names[:depth]) for depth in range(1, len(names))]


class RealTree:
    """The same operations on a folder of the tree."""

    def __init__(self, client: Client, uri: str) -> None:
        self.client, self.uri = client, uri

    def __call__(self, name: str, *arguments: Any) -> Any:
        at = self._at
        match name, arguments:
            case "write", (path, text, mode):
                return self.client.write(at(path), text, mode=mode).version
            case "mkdir", (path,):
                self.client.mkdir(at(path))
            case "mv", (source, target):
                self.client.mv(at(source), at(target))
            case "cp", (source, target):
                return self.client.cp(at(source), at(target), recursive=True).files_created
            case "rm", (path, recursive):
                return self.client.rm(at(path), recursive=recursive).estimated_deleted_count
            case "restore", (path,):
                return self.client.restore(at(path)).restored
            case "restore_version", (path, version):
                return self.client.restore(at(path), version).version
        return None

    def _at(self, path: str) -> str:
        return f"{self.uri}/{path}"

    def paths(self, found: list[Any]) -> list[str]:
        return sorted(each.removeprefix(f"{self.uri}/") for each in found)

    def check(self, model: TreeModel) -> None:
        """Compare everything that can be read."""
        self.client.mkdir(self.uri)
        files = {path: versions for path, versions in model.live.items() if versions is not FOLDER}
        assert self.paths(self.client.ls(self.uri, recursive=True, simple=True)) == sorted(model.live)
        assert self.paths(self.client.glob("**", self.uri).matches) == sorted(model.live)
        matches = [path for path in model.live if fnmatch.fnmatchcase(path, "*.md")]
        assert self.paths(self.client.glob("**/*.md", self.uri).matches) == sorted(matches)
        found = [path for path, versions in files.items() if "x" in versions[-1]]
        assert sorted({each.removeprefix(f"{self.uri}/") for each in self._grep()}) == sorted(found)
        for path, versions in files.items():
            numbers = [each.version for each in self.client.history(self._at(path)).versions]
            assert numbers == list(range(len(versions), 0, -1))
            assert [self.client.read(self._at(path), version=number) for number in sorted(numbers)] == versions

    def _grep(self) -> list[str]:
        return [each.uri for each in self.client.grep(self.uri, "x").matches]


paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
texts = st.sampled_from(["", "x", "y\nx\n", "z"])
operations = st.one_of(
    st.tuples(st.just("write"), paths, texts, st.sampled_from(["replace", "append", "create"])),
    st.tuples(st.just("mkdir"), paths),
    st.tuples(st.just("mv"), paths, paths),
    st.tuples(st.just("cp"), paths, paths),
    st.tuples(st.just("rm"), paths, st.booleans()),
    st.tuples(st.just("restore"), paths),
    st.tuples(st.just("restore_version"), paths, st.integers(1, 4)),
)
numbers = count()


@pytest.fixture
def client(target: str) -> Iterator[Client]:
    with holdfast.connect(target, settings=Settings(worker_threads=0)) as client:
        yield client


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(operations, min_size=5, max_size=20))
def test_random_operations_on_the_tree_give_the_answers_of_a_dictionary(
    client: Client, steps: list[tuple[Any, ...]]
) -> None:
    real, model = RealTree(client, f"viking://resources/tree {next(numbers)}"), TreeModel()
    for name, *arguments in steps:
        expected: Any
        try:
            expected = getattr(model, name)(*arguments)
        except RefusedError as refused:
            expected = str(refused)
        try:
            answer = real(name, *arguments)
        except HoldfastError as error:
            answer = error.code
        assert answer == expected, (name, arguments)
    real.check(model)
