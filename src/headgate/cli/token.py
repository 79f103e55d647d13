"""``headgate token``: tokens for requests over the network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.access.principal import AccessRole
from headgate.cli.engine import ask
from headgate.cli.output import AsCsv, AsJson, State, print_answer, print_json, seconds
from headgate.errors import InputError, printable
from headgate.service.tokens import tokens_table

__all__ = ["token"]

token = typer.Typer(
    name="token",
    no_args_is_help=True,
    help="Make and revoke tokens, which requests over the network carry; for admins.",
    rich_markup_mode="rich",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the token, which the audit has.")]
STATE = Path(".headgate")


@token.command()
def create(
    name: Name,
    role: Annotated[AccessRole, typer.Option("--role", help="What its holder may do at most.")] = AccessRole.VIEWER,
    teams: Annotated[
        list[str] | None, typer.Option("--team", metavar="NAME", help="An owner for whom it may speak; repeatable.")
    ] = None,
    expires: Annotated[
        str, typer.Option("--expires", metavar="SPAN", help="How long it is good for, such as 90d; or never.")
    ] = "90d",
    state: State = STATE,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it. It is shown once and kept nowhere: only a hash of it is.

    Example: [bold]headgate token create dashboard --role viewer --team city[/bold]
    """
    if role is AccessRole.NONE:
        raise InputError("BAD_TOKEN", "a token with the role none may do nothing; choose viewer or more")
    life_s = None if expires == "never" else seconds("--expires", expires)
    answer = ask(state, lambda client: client.create_token(name, role.value, teams or [], life_s), "making a token")
    if as_json:
        print_json(answer)
    else:
        typer.echo(answer["token"])


@token.command(name="list")
def list_tokens(state: State = STATE, as_json: AsJson = False, as_csv: AsCsv = False) -> None:
    """List the tokens: what each may do, until when, and when it was used last.

    Example: [bold]headgate token list[/bold]
    """
    answer = ask(state, lambda client: client.tokens(), "asking")
    print_answer(answer, [tokens_table(answer["tokens"])], as_json, as_csv)


@token.command()
def revoke(name: Name, state: State = STATE, as_json: AsJson = False) -> None:
    """Revoke a token: requests that carry it are refused from now on.

    Example: [bold]headgate token revoke dashboard[/bold]
    """
    answer = ask(state, lambda client: client.revoke_token(name), "revoking")
    if as_json:
        print_json(answer)
    else:
        typer.echo(printable(f"{name} is revoked."))
