"""Tokens, which requests over the network carry: made, revoked and looked up. Only a hash of each secret is kept."""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headgate.access.authority import Verb, check_access
from headgate.access.principal import AccessRole, Principal
from headgate.errors import InputError, shorten, unknown
from headgate.model.names import NAME_RULE, is_name
from headgate.model.table import Table, TableColumn
from headgate.store.entries import Audited, TokenStored
from headgate.store.files import write_json
from headgate.store.journal import Journal

__all__ = ["PREFIX", "Tokens", "digest_of", "tokens_table"]

PREFIX = "hg_"
"""What every token begins with, so that scanners of source code recognise one."""

SECRET_BYTES = 32
MOST_TOKENS = 10_000
LONGEST_LIFE_S = 10 * 366 * 86_400.0
NOTE_USE_EVERY_S = 60.0
ROLES = tuple(role for role in AccessRole if role is not AccessRole.NONE)
COLUMNS = (
    TableColumn("name", "name"),
    TableColumn("role", "role"),
    TableColumn("teams", "teams"),
    TableColumn("created", "created"),
    TableColumn("created_by", "by"),
    TableColumn("expires", "expires"),
    TableColumn("last_used", "last used"),
)


def digest_of(secret: str) -> str:
    """What is kept of a token. A fast hash is enough: the secret has 256 bits that nobody chose."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Tokens:
    """The tokens of an engine, by the hashes of their secrets."""

    def __init__(self, journal: Journal, state: Path) -> None:
        self._journal, self._uses_file = journal, state / "tokens_used.json"
        self._lock = threading.Lock()
        self._by_digest = {one.digest: one for one in journal.every(TokenStored) if not one.revoked}
        self._used: dict[str, float] = _uses(self._uses_file)
        self._noted_at = 0.0

    def create(
        self, who: Principal, name: str, role: AccessRole, teams: Iterable[str], expires_in_s: float | None
    ) -> dict[str, Any]:
        """Make a token; the answer is the only place where its secret ever is."""
        check_access(who, Verb.GRANT)
        _check(name, role, sorted(set(teams)), expires_in_s)
        secret, now = PREFIX + secrets.token_urlsafe(SECRET_BYTES), time.time()
        expires_at = None if expires_in_s is None else now + expires_in_s
        made = TokenStored(name, digest_of(secret), role.value, tuple(sorted(set(teams))), who.name, now, expires_at)
        with self._lock:
            if any(one.name == name for one in self._by_digest.values()):
                message = f"there is a token '{name}'; revoke it first, or choose another name"
                raise InputError("TOKEN_EXISTS", message, {"name": name})
            if len(self._by_digest) >= MOST_TOKENS:
                raise InputError("TOO_MANY_TOKENS", f"there are {MOST_TOKENS:,} tokens; revoke what nobody uses")
            self._journal.append(made, _audited(who, "create token", name))
            self._by_digest[made.digest] = made
            self._used.pop(name, None)
        return {**self._facts(made), "token": secret}

    def revoke(self, who: Principal, name: str) -> dict[str, Any]:
        """Revoke a token; requests that carry it are refused from now on."""
        check_access(who, Verb.GRANT)
        with self._lock:
            known = {one.name: one for one in self._by_digest.values()}
            if name not in known:
                raise unknown("UNKNOWN_TOKEN", f"no token {shorten(name)}", name, known)
            gone = known[name]
            revoked = TokenStored(
                name, "", gone.role, gone.teams, gone.created_by, gone.created_at, gone.expires_at, revoked=True
            )
            self._journal.append(revoked, _audited(who, "revoke token", name))
            del self._by_digest[gone.digest]
        return self._facts(gone)

    def listing(self, who: Principal) -> dict[str, Any]:
        """All tokens, without their secrets."""
        check_access(who, Verb.GRANT)
        kept = sorted(self._by_digest.copy().values(), key=lambda one: one.name)
        return {"tokens": [self._facts(one) for one in kept]}

    def principal(self, digest: str, origin: str) -> Principal | None:
        """Who carries a token with this hash; nobody if there is none, or it has expired."""
        token, now = self._by_digest.get(digest), time.time()
        if token is None or (token.expires_at is not None and token.expires_at <= now):
            return None
        self._note_use(token.name, now)
        return Principal(token.name, AccessRole(token.role), frozenset(token.teams), origin)

    def _note_use(self, name: str, now: float) -> None:
        """When it was last used; on the disk now and then, because it decides nothing."""
        self._used[name] = now
        if now - self._noted_at >= NOTE_USE_EVERY_S:
            self._noted_at = now
            with suppress(OSError):
                write_json(self._uses_file, self._used.copy())
                self._uses_file.chmod(0o600)

    def _facts(self, token: TokenStored) -> dict[str, Any]:
        return {
            "name": token.name,
            "role": token.role,
            "teams": list(token.teams),
            "created_by": token.created_by,
            "created_at": token.created_at,
            "expires_at": token.expires_at,
            "last_used_at": self._used.get(token.name),
        }


def tokens_table(tokens: Iterable[Mapping[str, Any]]) -> Table:
    """Tokens as a table."""
    rows = tuple(
        {
            **token,
            "teams": ", ".join(token["teams"]),
            "created": _day(token["created_at"], ""),
            "expires": _day(token["expires_at"], "never"),
            "last_used": _day(token["last_used_at"], "never"),
        }
        for token in tokens
    )
    return Table("Tokens", COLUMNS, rows)


def _day(at: float | None, otherwise: str) -> str:
    return otherwise if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%MZ")


def _uses(file: Path) -> dict[str, float]:
    with suppress(OSError, ValueError):
        return {str(name): float(at) for name, at in json.loads(file.read_text(encoding="utf-8")).items()}
    return {}


def _check(name: str, role: AccessRole, teams: Iterable[str], expires_in_s: float | None) -> None:
    if not is_name(name):
        raise InputError("BAD_TOKEN", f"{shorten(name)} is no name of a token: {NAME_RULE}")
    if role not in ROLES:
        raise InputError("BAD_TOKEN", f"a token needs a role: {', '.join(ROLES)}")
    for team in teams:
        if not is_name(team):
            raise InputError("BAD_TOKEN", f"{shorten(team)} is no name of a team: {NAME_RULE}")
    if expires_in_s is not None and not 1.0 <= expires_in_s <= LONGEST_LIFE_S:
        raise InputError("BAD_TOKEN", "a token lives at least a second and at most ten years")


def _audited(who: Principal, action: str, name: str) -> Audited:
    return Audited(time.time(), who.name, who.role.value, who.origin, action, (name,), "done")
