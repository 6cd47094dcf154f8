"""Batches that run at the same time use different keys."""

from holdfast.store.drivers.keys_in_use import KeysInUse
from holdfast.store.drivers.write_queue import SubmittedWrite


def writes(*names: str) -> list[SubmittedWrite[str]]:
    return [SubmittedWrite(name, lambda *_: None, key=("acme", name[:-1])) for name in names]


def works(batch: list[SubmittedWrite[str]]) -> list[str]:
    return [write.work for write in batch]


def test_a_write_waits_for_the_batch_that_uses_its_key() -> None:
    keys, first, second = KeysInUse[str](), writes("a1", "b1", "a2"), writes("a3", "c1", "b2")
    with keys.claim(first) as after_first:
        assert works(first) == ["a1", "b1", "a2"]
        with keys.claim(second) as after_second:
            assert works(second) == ["c1"]
        assert works(after_second) == []
    assert sorted(works(after_first)) == ["a3", "b2"]


def test_writes_without_a_name_and_keys_that_are_free_again_do_not_wait() -> None:
    keys = KeysInUse[str]()
    with keys.claim(writes("a1", "1")):
        unnamed = writes("2")
        with keys.claim(unnamed):
            assert works(unnamed) == ["2"]
    again = writes("a2")
    with keys.claim(again):
        assert works(again) == ["a2"]
