"""Each way in which a zip is wrong is named, with file and line; nothing in it can harm whoever checks it."""

import io
import stat
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtl.errors import DataError
from mtl.evaluation import submission_check
from mtl.evaluation.benchmarks import Benchmark
from mtl.evaluation.submission import constant_file, submission_zip
from mtl.evaluation.submission_check import zip_faults
from tests.evaluation.test_submission import glue_file

SMALL = Benchmark("glue", (glue_file("AX.tsv", 3), glue_file("RTE.tsv", 4), glue_file("STS-B.tsv", 3)))
CONTENTS = {file.name: constant_file(SMALL, file) for file in SMALL.files}

Packer = Callable[[zipfile.ZipFile], None]


def faults_of(path: Path, pack: Packer) -> list[str]:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        pack(archive)
    return zip_faults(SMALL, path)


def with_changed(name: str, change: Callable[[bytes], bytes]) -> Packer:
    def pack(archive: zipfile.ZipFile) -> None:
        for other, content in CONTENTS.items():
            archive.writestr(other, change(content) if other == name else content)

    return pack


def without(name: str) -> Packer:
    def pack(archive: zipfile.ZipFile) -> None:
        for other, content in CONTENTS.items():
            if other != name:
                archive.writestr(other, content)

    return pack


def renamed(name: str, new: str) -> Packer:
    def pack(archive: zipfile.ZipFile) -> None:
        for other, content in CONTENTS.items():
            archive.writestr(new if other == name else other, content)

    return pack


def with_extra(name: str, *, mode: int = 0o100644) -> Packer:
    def pack(archive: zipfile.ZipFile) -> None:
        for other, content in CONTENTS.items():
            archive.writestr(other, content)
        entry = zipfile.ZipInfo(name)
        entry.external_attr = mode << 16
        archive.writestr(entry, b"/etc/passwd")

    return pack


def lines(change: Callable[[list[str]], list[str]]) -> Callable[[bytes], bytes]:
    return lambda content: "\n".join(change(content.decode().split("\n"))).encode()


VARIANTS: list[tuple[str, Packer, list[str]]] = [
    (
        "missing",
        without("RTE.tsv"),
        ["RTE.tsv is missing"],
    ),
    (
        "misspelt",
        renamed("STS-B.tsv", "sts-b.tsv"),
        ["sts-b.tsv is no file of the benchmark; STS-B.tsv is, spelt so", "STS-B.tsv is missing"],
    ),
    ("stranger", with_extra("notes.txt"), ["notes.txt is no file of the benchmark"]),
    (
        "in a folder",
        renamed("RTE.tsv", "glue/RTE.tsv"),
        ["'glue/RTE.tsv' is not at the top of the zip: pack the files without a folder", "RTE.tsv is missing"],
    ),
    (
        "leads out",
        with_extra("../../RTE.tsv"),
        ["'../../RTE.tsv' is not at the top of the zip: pack the files without a folder"],
    ),
    (
        "link",
        with_extra("RTE.link", mode=stat.S_IFLNK | 0o777),
        ["RTE.link is a link, not a file", "RTE.link is no file of the benchmark"],
    ),
    (
        "header",
        with_changed("RTE.tsv", lines(lambda rows: ["id\tlabel", *rows[1:]])),
        ["RTE.tsv: the first line is 'id\\tlabel', not 'index\\tprediction'"],
    ),
    (
        "byte-order mark",
        with_changed("RTE.tsv", lambda content: b"\xef\xbb\xbf" + content),
        ["RTE.tsv: the first line is '\\ufeffindex\\tprediction', not 'index\\tprediction'"],
    ),
    (
        "too few rows",
        with_changed("RTE.tsv", lines(lambda rows: [*rows[:-2], ""])),
        ["RTE.tsv: 3 rows of predictions, the test file has 4"],
    ),
    (
        "order",
        with_changed("RTE.tsv", lines(lambda rows: [rows[0], rows[2], rows[1], *rows[3:]])),
        ["RTE.tsv, line 2: index '1' where 0 has to stand: every row of the test file, in its order, from 0"],
    ),
    (
        "label",
        with_changed("RTE.tsv", lambda content: content.replace(b"2\tentailment", b"2\tneutral")),
        ["RTE.tsv, line 4: 'neutral' is none of entailment, not_entailment"],
    ),
    (
        "number for a name",
        with_changed("AX.tsv", lambda content: content.replace(b"0\tentailment", b"0\t0")),
        ["AX.tsv, line 2: '0' is none of contradiction, entailment, neutral"],
    ),
    (
        "out of range",
        with_changed("STS-B.tsv", lambda content: content.replace(b"1\t2.701", b"1\t5.001")),
        ["STS-B.tsv, line 3: 5.001 is not within 0 to 5"],
    ),
    (
        "nan",
        with_changed("STS-B.tsv", lambda content: content.replace(b"1\t2.701", b"1\tnan")),
        ["STS-B.tsv, line 3: nan is not within 0 to 5"],
    ),
    (
        "no number",
        with_changed("STS-B.tsv", lambda content: content.replace(b"2\t2.701", b"2\thigh")),
        ["STS-B.tsv, line 4: 'high' is no number"],
    ),
    (
        "columns",
        with_changed("STS-B.tsv", lambda content: content.replace(b"0\t2.701", b"0,2.701")),
        ["STS-B.tsv, line 2: 1 columns, not 2"],
    ),
    ("not utf-8", with_changed("RTE.tsv", lambda content: content[:-1] + b"\xff"), ["RTE.tsv: not UTF-8 at byte 68"]),
]


@pytest.mark.parametrize(
    ("pack", "expected"), [variant[1:] for variant in VARIANTS], ids=[variant[0] for variant in VARIANTS]
)
def test_every_fault_is_named(tmp_path: Path, pack: Packer, expected: list[str]) -> None:
    assert faults_of(tmp_path / "some.zip", pack) == expected


def test_what_we_write_has_no_fault_nor_has_a_file_with_the_line_ends_of_windows(tmp_path: Path) -> None:
    path = tmp_path / "ours.zip"
    path.write_bytes(submission_zip(SMALL, CONTENTS))
    assert zip_faults(SMALL, path) == []
    windows = with_changed("RTE.tsv", lambda content: content.replace(b"\n", b"\r\n"))
    assert faults_of(tmp_path / "windows.zip", windows) == []


def test_faults_of_several_files_are_all_named(tmp_path: Path) -> None:
    def pack(archive: zipfile.ZipFile) -> None:
        for name, content in CONTENTS.items():
            archive.writestr(name, content.replace(b"index", b"row"))

    assert [fault.split(":")[0] for fault in faults_of(tmp_path / "some.zip", pack)] == list(CONTENTS)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_stands_twice_is_named(tmp_path: Path) -> None:
    assert faults_of(tmp_path / "some.zip", with_extra("RTE.tsv")) == ["RTE.tsv stands 2 times in the zip"]


def test_an_encrypted_file_is_named(tmp_path: Path) -> None:
    content = bytearray(submission_zip(SMALL, CONTENTS))
    # The flag in the directory at the end of the file, which is what readers go by.
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path = tmp_path / "some.zip"
    path.write_bytes(bytes(content))
    assert zip_faults(SMALL, path) == ["AX.tsv is encrypted"]


def test_a_file_too_long_is_never_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission_check, "_LARGEST", 1000)
    bomb = with_changed("RTE.tsv", lambda content: b"0" * 100_000)
    assert faults_of(tmp_path / "some.zip", bomb) == ["RTE.tsv would be 100,000 bytes long, 1,000 at most"]


def test_a_file_that_lies_about_its_length_is_not_read_beyond_it(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        with_changed("AX.tsv", lambda content: b"0" * 100_000)(archive)
    content = packed.getvalue().replace((100_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    path = tmp_path / "some.zip"
    path.write_bytes(content)
    assert [fault.split(" cannot")[0] for fault in zip_faults(SMALL, path)] == ["AX.tsv"]


def test_damaged_content_is_named(tmp_path: Path) -> None:
    content = submission_zip(SMALL, CONTENTS).replace(b"0\t2.701", b"0\t1.701")
    path = tmp_path / "some.zip"
    path.write_bytes(content)
    (fault,) = zip_faults(SMALL, path)
    assert fault.startswith("STS-B.tsv cannot be unpacked (Bad CRC-32")


def test_what_is_no_zip_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "some.zip"
    path.write_bytes(submission_zip(SMALL, CONTENTS)[:-30])
    assert zip_faults(SMALL, path) == ["some.zip is no whole zip file (File is not a zip file)"]
    with pytest.raises(DataError, match=r"absent\.zip: No such file"):
        zip_faults(SMALL, tmp_path / "absent.zip")
    with pytest.raises(DataError, match="directory"):
        zip_faults(SMALL, tmp_path)


@given(st.data())
def test_bytes_that_mean_nothing_are_a_fault_and_never_an_error(data: st.DataObject) -> None:
    content = bytearray(submission_zip(SMALL, CONTENTS))
    # The directory of the zip comes last, and most of what can be wrong is in it.
    start = content.index(b"PK\x01\x02")
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(start, len(content) - 1))] = data.draw(st.integers(0, 255))
    with tempfile.NamedTemporaryFile(suffix=".zip") as file:
        file.write(content)
        file.flush()
        assert all(isinstance(fault, str) for fault in zip_faults(SMALL, Path(file.name)))


def test_a_zip_of_very_many_entries_is_refused_before_any_is_looked_at(tmp_path: Path) -> None:
    def pack(archive: zipfile.ZipFile) -> None:
        for number in range(201):
            archive.writestr(f"{number}.tsv", b"")

    assert faults_of(tmp_path / "some.zip", pack) == ["201 entries, the benchmark has 3 files"]
