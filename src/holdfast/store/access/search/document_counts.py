"""How many documents and vectors a user, an account or all accounts have."""

from holdfast.store.database import Tx

MAX_VECTORS = 1_000_000
"""Up to how many vectors are counted."""


def count_documents(tx: Tx, account_id: str | None, owner_id: str | None) -> int:
    """Count the indexed documents of a user, of an account, or of all accounts."""
    where, params = _scope(account_id, owner_id)
    row = tx.one(f"SELECT COALESCE(SUM(documents), 0) FROM index_owners WHERE {where}", params)
    return int(row[0]) if row else 0


def count_vectors(tx: Tx, account_id: str | None, owner_id: str | None) -> int:
    """Count the vectors of a user, of an account, or of all accounts, up to `MAX_VECTORS`."""
    where, params = _scope(account_id, owner_id)
    counted = f"SELECT 1 FROM vectors WHERE {where} LIMIT {MAX_VECTORS}"
    row = tx.one(f"SELECT COUNT(*) FROM ({counted}) AS counted", params)
    return int(row[0]) if row else 0


def _scope(account_id: str | None, owner_id: str | None) -> tuple[str, list[str]]:
    chosen = {"account_id": account_id, "owner_id": owner_id}
    given = {column: value for column, value in chosen.items() if value is not None}
    return " AND ".join(["TRUE", *(f"{column} = ?" for column in given)]), list(given.values())
