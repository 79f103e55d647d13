"""Who may do what: against a table that was written by hand, and what holds for every principal."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.access.authority import ENGINE, AccessObject, AccessRefused, Verb, check_access, may
from headgate.access.policy import EVERYBODY, AccessPolicy
from headgate.access.principal import AccessRole, Principal

OWN, OTHERS = AccessObject("city", "alarms"), AccessObject("rail", "delays")

# For each verb: the roles that may do it to the engine, to what is their own, and to what is another team's.
TABLE = {
    "read": ("vsoa", "vsoa", "vsoa"),
    "inspect": ("oa", "vsoa", "oa"),
    "submit": ("oa", "soa", "oa"),
    "change": ("oa", "soa", "oa"),
    "operate": ("oa", "oa", "oa"),
    "audit": ("a", "a", "a"),
    "grant": ("a", "a", "a"),
}
NAMES = st.sampled_from(["ana", "ben", "city", "rail", "nobody"])


@pytest.mark.parametrize("role", AccessRole)
@pytest.mark.parametrize("verb", Verb)
def test_the_table_holds(role: AccessRole, verb: Verb) -> None:
    principal = Principal("ana", role, frozenset({"city"}))
    initial = "-" if role is AccessRole.NONE else role.value[0]
    expected = [initial in allowed for allowed in TABLE[verb.value]]
    assert [may(principal, verb, what) for what in (ENGINE, OWN, OTHERS)] == expected


@given(NAMES, st.sampled_from(AccessRole), st.frozensets(NAMES), st.sampled_from(Verb), NAMES)
def test_a_refusal_says_who_what_and_why(
    name: str, role: AccessRole, teams: frozenset[str], verb: Verb, owner: str
) -> None:
    principal, what = Principal(name, role, teams), AccessObject(owner, "flow")
    if may(principal, verb, what):
        check_access(principal, verb, what)
        return
    with pytest.raises(AccessRefused) as caught:
        check_access(principal, verb, what)
    message = caught.value.message
    assert caught.value.condition == "NOT_ALLOWED"
    assert f"'{name}' may not {verb}" in message
    assert role.value in message or "members" in message


@given(NAMES, st.frozensets(NAMES), st.sampled_from(Verb), NAMES)
def test_a_higher_role_may_never_do_less(name: str, teams: frozenset[str], verb: Verb, owner: str) -> None:
    for low, high in itertools.pairwise(AccessRole):
        assert may(Principal(name, high, teams), verb, AccessObject(owner)) or not may(
            Principal(name, low, teams), verb, AccessObject(owner)
        )


def test_all_objects_must_be_allowed() -> None:
    ana = Principal("ana", AccessRole.SUBMITTER, frozenset({"city"}))
    check_access(ana, Verb.CHANGE, OWN, OWN)
    with pytest.raises(AccessRefused, match="dataflow 'delays' of 'rail'"):
        check_access(ana, Verb.CHANGE, OWN, OTHERS)


def test_without_a_policy_only_who_runs_the_engine_may_do_anything() -> None:
    policy = AccessPolicy()
    own, other = policy.principal("ana", runs_engine=True), policy.principal("ben")
    assert all(may(own, verb, what) for verb in Verb for what in (ENGINE, OWN, OTHERS))
    assert not any(may(other, verb, what) for verb in Verb for what in (ENGINE, OWN, OTHERS))


def test_a_team_is_not_its_namesake_s() -> None:
    policy = AccessPolicy({EVERYBODY: AccessRole.SUBMITTER}, {"city": frozenset({"ana"})})
    assert may(policy.principal("ben"), Verb.SUBMIT, AccessObject("ben"))
    assert not may(policy.principal("city"), Verb.SUBMIT, AccessObject("city"))
    assert may(policy.principal("ana"), Verb.SUBMIT, AccessObject("city"))
    assert not may(policy.principal("ana"), Verb.SUBMIT, AccessObject("nobody")), "what nobody owns is nobody's"
