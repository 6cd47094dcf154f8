"""Accounts and the audit: for operators and administrators."""

from holdfast.engine.rule import Moment, Rule, always
from holdfast.errors import AlreadyExistsError
from holdfast.model import Account, AuditPage, Principal
from holdfast.ops import CreateAccount, ListAccounts, ListAudit
from holdfast.store import accounts, audit
from holdfast.store.database import Tx
from holdfast.store.moments import from_micros


def _create_account(tx: Tx, _who: Principal, op: CreateAccount, _ready: None, moment: Moment) -> Account:
    if not accounts.insert(tx, op.account_id, moment.now):
        raise AlreadyExistsError(f"Account {op.account_id} already exists", resource=op.account_id, type="account")
    return Account(op.account_id, from_micros(moment.now))


def _list_accounts(tx: Tx, _who: Principal, _op: ListAccounts, _ready: None, _moment: Moment) -> list[Account]:
    return accounts.every(tx)


def _list_audit(tx: Tx, _who: Principal, op: ListAudit, _ready: None, _moment: Moment) -> AuditPage:
    found = audit.page(tx, op.limit + 1, op.cursor)
    shown = found[: op.limit]
    return AuditPage(shown, shown[-1].id if len(found) > op.limit else None)


RULES: dict[type, Rule] = {
    CreateAccount: Rule(_create_account, always),
    ListAccounts: Rule(_list_accounts),
    ListAudit: Rule(_list_audit),
}
