"""A test suite whose fixture keeps what each test used; run by the real pytest."""
import pytest

kept = []


def load(size):
    return bytearray(size)  # known: fixture


@pytest.fixture(params=range(40))
def table(request):
    rows = load(4_000_000)
    kept.append(rows)
    yield rows


def test_table_has_rows(table):
    assert len(table) == 4_000_000


def test_one_fails():
    assert len(kept) == 0, "kept on purpose"
