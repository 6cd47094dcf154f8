"""The terms of a document in the text index that say where it belongs."""


def of_account(account: str) -> str:
    """The term of documents of an account. Terms have only letters and digits, whatever a name has."""
    return f"a{account.encode().hex()}"


def of_owner(account: str, owner_id: str) -> str:
    return f"o{account.encode().hex()}x{owner_id.encode().hex()}"


def of_log(log_id: int) -> str:
    """The term of documents of a log. Log ids differ between accounts."""
    return f"l{log_id}"


def of_kind(kind: str) -> str:
    return f"k{kind}"
