"""The ledger of an output: settings that agree, records, claims of live and dead runs, and shared units."""

import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from robustgen.errors import OutputError
from robustgen.files import ledger as ledgers
from robustgen.files.ledger import Ledger, Record, Standing
from robustgen.files.set_files import AnotherSetError, WrittenFile
from robustgen.files.storage import open_store
from robustgen.files.storage.host import HOST_ID
from tests.helpers import PATIENCE

SETTINGS = {"seed": 0, "models": [{"name": "a", "size": 8}], "classes": ["cat", "dog"]}
RECORD = Record({"cat/a": (3, "id")}, ["fog/1"], [WrittenFile("fog/1/cat/a", 2, "ab")], [{"key": "dog/b"}])


@pytest.fixture
def ledger(tmp_path):
    return Ledger(open_store(tmp_path / "out"))


# --- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({}, None),
        ({"notes": "others"}, None),
        ({"mirror": None}, None),
        ({"seed": 1}, "seed was 0 and is now 1. "),
        ({"levels": (0, 9)}, "levels was None and is now [0, 9]. "),
        ({"models": [{"name": "b", "size": 8}]}, "models.0.name was 'a' and is now 'b'. "),
        ({"classes": ["cat"], "seed": 2}, "seed was 0 and is now 2"),
    ],
)
@pytest.mark.parametrize("about", ["", "about.json"])
def test_settings_agree_or_are_refused_by_name(tmp_path, about, changed, says):
    def agree(**choices):
        ledger = Ledger(open_store(tmp_path / "out"), about, schema=None if about else 1)
        wanted = SETTINGS | changed
        notes = {"notes": wanted.pop("notes", "mine")}
        ledger.agree(wanted, notes, **choices)

    Ledger(open_store(tmp_path / "out"), about, schema=None if about else 1).agree(
        SETTINGS, {"notes": "mine"}
    )
    path = tmp_path / "out" / (about or ".robustgen/settings.json")
    before = path.read_bytes()
    assert json.loads(before) == ({} if about else {"schema": 1}) | SETTINGS | {"notes": "mine"}
    if says:
        with pytest.raises(
            AnotherSetError, match="Choose another output, or start over with --overwrite"
        ) as error:
            agree()
        assert f"{tmp_path / 'out'}: created with different settings: " in str(error.value)
        assert says in str(error.value)
        found = []
        agree(start_over=found.append)
        assert {name.partition(".")[0] for name in found[0]} == changed.keys()
    agree()
    assert (path.read_bytes() == before) == (says is None)


@pytest.mark.parametrize("damage", ["{", "[]", '{"schema": 99}', '{"seed": 0}'])
def test_settings_that_cannot_be_read_are_refused_or_replaced(ledger, tmp_path, damage):
    path = tmp_path / "out" / ".robustgen" / "settings.json"
    path.parent.mkdir(parents=True)
    path.write_text(damage)
    with pytest.raises(AnotherSetError, match=r"settings\.json: .*--overwrite"):
        ledger.agree(SETTINGS)
    found = []
    ledger.agree(SETTINGS, start_over=found.append)
    assert found == [{}] and ledger.settings() == SETTINGS


def test_a_file_in_the_place_of_the_ledger_is_named(ledger, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".robustgen").write_text("mine")
    with pytest.raises(OutputError, match="is in the way of the state folder"):
        ledger.agree(SETTINGS)


def test_standings(tmp_path):
    root = tmp_path / "out"
    beside = open_store(tmp_path / ".out.robustgen")
    ledger = Ledger(open_store(root), store=beside)
    assert ledger.standing() is Standing.NEW
    ledger.agree(SETTINGS)
    assert ledger.standing() is Standing.BEGUN
    assert Ledger(open_store(root), store=beside).standing() is Standing.STARTED
    root.mkdir()
    (root / "file").touch()
    ledger.put_record("a", RECORD)
    assert ledger.standing() is Standing.STARTED
    ledger.mark_finished(ledger.fingerprints())
    assert ledger.standing() is Standing.FINISHED
    os.utime(tmp_path / ".out.robustgen" / "records" / "a.json", (1, 1))
    assert ledger.standing() is Standing.COPIED
    ledger.put_record("b", RECORD)
    assert ledger.standing() is Standing.STARTED
    shutil.rmtree(root)
    assert ledger.standing() is Standing.ORPHANED
    ledger.clear()
    assert ledger.standing() is Standing.NEW and not [*tmp_path.iterdir()]


def test_a_run_that_fails_before_its_first_unit_leaves_nothing(ledger, tmp_path):
    for is_claimed in (False, True):
        with pytest.raises(KeyboardInterrupt), ledger.discard_if_unused():
            ledger.agree(SETTINGS)
            if is_claimed:
                ledger.claim("a")
            raise KeyboardInterrupt
        assert ledger.exists == is_claimed


# --- records and claims --------------------------------------------------------------------------


def test_records_are_read_as_written_unless_they_are_damaged(ledger, tmp_path):
    ledger.put_record("units/a", RECORD)
    assert ledger.read_record("units/a").to_bytes() == RECORD.to_bytes()
    assert [*ledger.read_records(any_version=True)] == [("units/a", Record(files=RECORD.files))]
    path = tmp_path / "out" / ".robustgen" / "records" / "units" / "a.json"
    path.write_bytes(path.read_bytes().replace(b"fog", b"dog"))
    assert [*ledger.read_records()] == [("units/a", None)] and ledger.has_record("units/a")
    ledger.delete_record("units/a")
    assert ledger.read_record("units/a") is None and not ledger.list_records()


@pytest.mark.parametrize(
    ("claim", "is_respected"),
    [
        ("{dead} {host}", False),
        ("{alive} {host}", True),
        ("1 another-host", True),
        ("", False),
        ("nonsense here", False),
        ("\0", False),
    ],
)
def test_claims_of_runs_that_may_be_alive_are_respected(ledger, claim, is_respected):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    ledger.store.put("claims/a", claim.format(dead=dead.pid, alive=os.getppid(), host=HOST_ID).encode())
    assert ledger.has_live_claims() == is_respected
    assert ledger.claim("a") is not is_respected
    assert ledger.claim("b") and ledger.claim("b")


def test_what_another_run_finished_before_the_claim_is_not_made_again(ledger, monkeypatch):
    claim, made = Ledger.claim, []

    def finish_first(self, name):
        self.put_record(name, RECORD)
        return claim(self, name)

    monkeypatch.setattr(Ledger, "claim", finish_first)
    assert [*ledger.share_one_by_one("a", made.append)] == ["a"] and made == []


def test_claims_of_other_machines_age(ledger, monkeypatch):
    """Each look takes ten seconds; half a minute without news is enough for all units left."""
    now, made = [0.0], []
    wait = lambda _: now.__setitem__(0, now[0] + 10)  # noqa: E731
    monkeypatch.setattr(ledgers, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=wait))
    for name in "abc":
        ledger.store.put(f"claims/{name}", b"1 another-host")
    assert sorted(ledger.share_one_by_one("abc", made.append, made.__contains__)) == ["a", "b", "c"]
    assert sorted(made) == ["a", "b", "c"] and now[0] >= 30


RUN = """
import os, sys, time
from pathlib import Path
from robustgen.files.ledger import Ledger, Record
from robustgen.files.storage import open_store

place, runs, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
ledger, made = Ledger(open_store(place / "out")), []
ledger.agree({"seed": 0})
(place / str(os.getpid())).touch()
while len([*place.glob("[0-9]*")]) < runs:
    time.sleep(0.01)

def make(name):
    if len(made) == last:
        os.kill(os.getpid(), 9)
    time.sleep(0.02)
    ledger.put_record(name, Record())
    made.append(name)

units = [f"units/{number}" for number in range(30)]
assert sorted(ledger.share_one_by_one(units, make)) == sorted(units)
print(len(made))
"""


@pytest.mark.parametrize("lasts", [(99, 99), (4, 99)])
def test_two_runs_share_the_units_also_if_one_is_killed(tmp_path, lasts):
    processes = [
        subprocess.Popen([sys.executable, "-c", RUN, tmp_path, "2", str(last)], stdout=subprocess.PIPE)
        for last in lasts
    ]
    made = [process.communicate(timeout=PATIENCE)[0] for process in processes]
    counts = [int(text or 4) for text in made]
    assert [process.returncode for process in processes] == [0 if last == 99 else -9 for last in lasts]
    assert sum(counts) == 30 and min(counts) > 0
