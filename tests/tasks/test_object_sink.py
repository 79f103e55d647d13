"""Files in a local S3, each delivery once; read with Amazon's own client."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import InputError
from headgate.model.work import SinkContext, SinkWork
from headgate.runtime.file_source.driver import FileBatches
from headgate.tasks.sinks import TYPES, WriteFiles
from headgate.tasks.source_folder import read_note
from headgate.tasks.sources import ReadFiles
from tests.services import S3_SETTINGS, the_object_store


@dataclass(frozen=True)
class Delivery:
    """Staged files, as an epoch makes them."""

    files: Sequence[tuple[str, int]]
    epoch: int = 3
    origin: str = "f-1"

    def table(self) -> Any:
        raise NotImplementedError


def staged(folder: Path, *texts: str) -> Delivery:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{number}.json" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return Delivery([(str(path), 1) for path in paths])


def write(url: str, delivery: Delivery) -> None:
    work = next(one.work for one in TYPES if one.name == "write_files")
    assert isinstance(work, SinkWork)
    work.write(WriteFiles(path=url), delivery, SinkContext(None, None, "f.t", "0af3"))


def objects(url: str) -> dict[str, str]:
    """What a bucket has, by name."""
    bucket, _, folder = url.removeprefix("s3://").partition("/")
    client = the_object_store().client()
    names = [one["Key"] for one in client.list_objects_v2(Bucket=bucket, Prefix=folder).get("Contents", ())]
    return {name: client.get_object(Bucket=bucket, Key=name)["Body"].read().decode() for name in names}


WANTED = {"out/part-00000003-f-1-0.json": "one\n", "out/part-00000003-f-1-1.json": "two\n"}


def test_a_delivery_that_comes_again_changes_nothing(tmp_path: Path) -> None:
    url = f"{the_object_store().bucket()}/out"
    delivery = staged(tmp_path / "staged", "one\n", "two\n")
    write(url, delivery)
    assert objects(url) == WANTED
    write(url, delivery)  # its staged files are gone by now
    write(url, staged(tmp_path / "staged", "one\n", "two\n"))
    assert objects(url) == WANTED


def test_a_staged_file_that_is_lost_is_not_taken_for_delivered(tmp_path: Path) -> None:
    url = f"{the_object_store().bucket()}/out"
    delivery = staged(tmp_path / "staged", "one\n", "two\n")
    Path(delivery.files[1][0]).unlink()
    with pytest.raises(FileNotFoundError, match="the staged file is gone"):
        write(url, delivery)


KILLED = """
import os, signal, sys
import s3fs
import tests.tasks.test_object_sink as here
from pathlib import Path
url, folder, moment = sys.argv[1:]
done = []
def killed(self, *args, **more):
    if moment == "between" and not done:
        done.append(put(self, *args, **more))
        return
    if moment == "after":
        put(self, *args, **more)
    os.kill(os.getpid(), signal.SIGKILL)
put, s3fs.S3FileSystem.put_file = s3fs.S3FileSystem.put_file, killed
here.write(url, here.staged(Path(folder), "one\\n", "two\\n"))
"""


@pytest.mark.parametrize(("moment", "there"), [("before", 0), ("after", 1), ("between", 1)])
def test_an_engine_that_was_killed_around_an_upload(tmp_path: Path, moment: str, there: int) -> None:
    url = f"{the_object_store().bucket()}/out"
    command = [sys.executable, "-c", KILLED, url, str(tmp_path / "staged"), moment]
    environment = {**os.environ, **S3_SETTINGS, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=120)
    assert ran.returncode == -signal.SIGKILL, ran.stderr.decode()
    assert len(objects(url)) == there
    write(url, Delivery([(str(tmp_path / "staged" / f"{number}.json"), 1) for number in range(2)]))
    assert objects(url) == WANTED


def test_file_systems_in_which_files_grow_get_them_by_renaming(tmp_path: Path) -> None:
    import fsspec

    system = fsspec.filesystem("memory")
    write("memory://made/out", staged(tmp_path / "staged", "one\n"))
    assert [Path(name).name for name in system.find("/made/out")] == ["part-00000003-f-1-0.json"]


def test_a_source_sees_new_objects_and_waits_while_storage_is_away(tmp_path: Path) -> None:
    store = the_object_store()
    url = f"{store.bucket()}/in"
    client, bucket = store.client(), url.split("/")[2]
    client.put_object(Bucket=bucket, Key="in/0.json", Body=b'{"id": 1}\n')
    batches = FileBatches(ReadFiles(path=f"{url}/*.json", columns="id bigint"), tmp_path)
    first = batches.next({"rows": 0, "batch": 0})
    assert first["batch"] == 1
    client.put_object(Bucket=bucket, Key="in/1.json", Body=b'{"id": 2}\n')
    second = batches.next(first)
    assert [span.path for span in batches.plan(second["batch"]).spans] == [f"{url}/1.json"]
    client.put_object(Bucket=bucket, Key="in/2.json", Body=b'{"id": 3}\n')
    store.stop()
    try:
        assert batches.next(second) == second
        assert f"{url}/*.json cannot be reached" in read_note(tmp_path, "waits.json")
    finally:
        store.start()
    assert batches.next(second)["batch"] == 3
    assert read_note(tmp_path, "waits.json") is None


def test_what_cannot_work_is_refused_in_a_sentence(tmp_path: Path) -> None:
    work = next(one.work for one in TYPES if one.name == "write_files")
    assert isinstance(work, SinkWork)
    with pytest.raises(InputError, match="'nothing://a' is not a URL of files"):
        work.check(WriteFiles(path="nothing://a"), None, [["k"]])
