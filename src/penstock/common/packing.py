"""How shipped files get to the slots.

In the driver a file or a folder is *packed*: copied under a name that is made of its content, so
that two versions of a file never meet and one version is sent once. In a slot it is *installed*:
unpacked beside the packed file, once for all slots of an executor, and made reachable by its role
for as long as the slot runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from penstock.common.shipped_files import PackedFile, Role, ShippedFile, cached_paths, is_archive

_BLOCK = 1 << 20

# --- in the driver ----------------------------------------------------------------------------


def pack(file: ShippedFile, folder: Path) -> PackedFile:
    """Put what is now in the file, or the folder that it is, under a name of its own."""
    if file.role is Role.PATH:
        return PackedFile(file, "", True)
    source = Path(file.check().path)
    is_folder = source.is_dir()
    key = f"penstock-{_digest(source)}{'.tar' if is_folder else '.file'}"
    packed = folder / key
    if not packed.exists():
        draft = folder / f"{key}.{os.getpid()}.draft"
        if is_folder:
            with tarfile.open(draft, "w") as archive:
                archive.add(source, arcname=".", filter=_without_caches)
        else:
            shutil.copyfile(source, draft)
        os.replace(draft, packed)
    return PackedFile(file, key, is_folder)


def _without_caches(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in Path(member.name).parts else member


def _digest(source: Path) -> str:
    digest = hashlib.sha256()
    if source.is_dir():
        for path in sorted(source.rglob("*")):
            if "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(source)}\0{path.lstat().st_mode}\0".encode())
                if path.is_file():
                    _digest_file(path, digest)
    else:
        # The name too: it is what a module is imported by.
        digest.update(f"{source.name}\0".encode())
        _digest_file(source, digest)
    return digest.hexdigest()[:32]


def _digest_file(path: Path, digest: hashlib._Hash) -> None:
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)


# --- in a slot --------------------------------------------------------------------------------


@contextlib.contextmanager
def installed(job_id: str, files: Sequence[PackedFile], root: Path) -> Iterator[None]:
    """Within the block the files of a job are there; `root` is where the packed files lie.

    Afterwards the process is as before: no path, no module and no name of the job's is left.
    """
    if not files:
        yield
        return
    # Absolute, because the working directory may change; Spark calls its own folder ".".
    places = {packed: _unpacked(packed, root.resolve()) for packed in files}
    importable = (Role.PYTHON, Role.PATH)
    modules = [str(places[packed]) for packed in files if packed.file.role in importable]
    own = {(job_id, p.file.name): _cached_path(p, places[p]) for p in files if _is_cached(p)}
    before, known = list(sys.path), set(sys.modules)
    sys.path[:0] = modules
    cached_paths.update(own)
    try:
        with _archives([p for p in files if p.file.role is Role.ARCHIVE], places):
            yield
    finally:
        for key in own:
            cached_paths.pop(key, None)
        sys.path[:] = before
        # A process serves many jobs: the next one's module of that name may be another.
        for name in set(sys.modules) - known:
            origin = getattr(sys.modules[name], "__file__", None) or ""
            if any(origin.startswith(f"{folder}{os.sep}") for folder in modules):
                del sys.modules[name]


def _is_cached(packed: PackedFile) -> bool:
    return packed.file.role is Role.CACHED


def _cached_path(packed: PackedFile, place: Path) -> str:
    return str(place if packed.is_folder else place / Path(packed.file.path).name)


@contextlib.contextmanager
def _archives(files: Sequence[PackedFile], places: dict[PackedFile, Path]) -> Iterator[None]:
    if not files:
        yield
        return
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="penstock-job-") as folder:
        for packed in files:
            link = Path(folder, packed.file.name)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(places[packed], target_is_directory=True)
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def _unpacked(packed: PackedFile, root: Path) -> Path:
    """The folder that holds the file, or what was in it; made once, by whoever is first."""
    source, file = root / packed.key, packed.file
    if file.role is Role.PATH:
        return Path(file.path)
    place = root / f"{packed.key}-{file.role.value}{'-x' if file.executable else ''}"
    if place.exists():
        return place
    draft = Path(tempfile.mkdtemp(prefix=f"{place.name}.", dir=root))
    if packed.is_folder:
        _extract_tar(source, draft)
    elif file.role is not Role.CACHED and is_archive(str(source), Path(file.path).name):
        if zipfile.is_zipfile(source):
            with zipfile.ZipFile(source) as archive:
                archive.extractall(draft)
        else:
            _extract_tar(source, draft)
    else:
        target = draft / Path(file.path).name
        shutil.copyfile(source, target)
        if file.executable:
            target.chmod(0o755)
    try:
        draft.rename(place)
    except OSError:
        # Another slot was faster, and what it made is the same.
        shutil.rmtree(draft, ignore_errors=True)
    return place


def _extract_tar(source: Path, target: Path) -> None:
    with tarfile.open(source) as archive:
        archive.extractall(target, filter="data")
