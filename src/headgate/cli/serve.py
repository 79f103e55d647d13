"""``headgate serve``: the engine as a service, on its Unix socket and on the network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.background import stop_signals
from headgate.cli.engine_options import (
    ClusterFolder,
    Conf,
    EngineState,
    Exact,
    Files,
    Master,
    PolicyModeOption,
    PolicyName,
    Price,
    Replace,
    Strategy,
    TimeBudget,
    Trigger,
    engine_settings,
)
from headgate.cli.log_lines import LogForm, LogLines
from headgate.cli.output import known_types, read_dataflows, sentence_to_stderr
from headgate.cli.run import run_engine
from headgate.cli.supervisor import supervised
from headgate.errors import InputError
from headgate.service.run import RunLimits, make_importable

if TYPE_CHECKING:
    from headgate.api.network import NetworkListener
    from headgate.service.demo import DemoCity
    from headgate.service.serve import ServedEngine

__all__ = ["serve"]

FAILED = 1
DEMO_ADDRESS = "127.0.0.1:8080"
DEMO_FOLDER = Path(".headgate-demo")


def serve(
    files: Files = None,
    state: EngineState = Path(".headgate"),
    listen: Annotated[
        str | None,
        typer.Option("--listen", metavar="HOST:PORT", help="Serve on the network too, such as 127.0.0.1:8080."),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option("--tls-certificate", metavar="FILE", help="Encrypt with this certificate, as PEM.")
    ] = None,
    key: Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="Its private key, as PEM.")] = None,
    requests_per_s: Annotated[
        float, typer.Option("--requests-per-s", min=1.0, help="Requests a second that one caller may send.")
    ] = 500.0,
    log: Annotated[LogForm, typer.Option("--log", help="How log lines are written.")] = LogForm.TEXT,
    log_requests: Annotated[bool, typer.Option("--log-requests", help="Log a line for every request.")] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Run the city example: four teams, and a day's load in ten minutes.")
    ] = False,
    master: Master = None,
    cluster: ClusterFolder = None,
    conf: Conf = None,
    trigger: Trigger = "500ms",
    time_budget: TimeBudget = "60s",
    replace: Replace = False,
    strategy: Strategy = None,
    exact: Exact = False,
    price: Price = "0.10",
    policy: PolicyName = None,
    mode: PolicyModeOption = None,
) -> None:
    """Run the engine as a service: its API on the Unix socket of the state directory, with --listen on the network too.

    Requests over the network need a token; make one with headgate token create. An engine that dies is started again.
    It stops on Ctrl-C or TERM, after the micro-batches under way. Exit status 0 after a clean stop.

    Examples: [bold]headgate serve --state here[/bold], [bold]headgate serve --listen 127.0.0.1:8080[/bold]
    """
    registry = known_types()
    city = _city(files) if demo else None
    if city is not None:
        state, files, listen = city.state, city.files, listen or DEMO_ADDRESS
    settings = engine_settings(
        registry,
        state,
        master,
        cluster,
        conf,
        trigger,
        time_budget,
        strategy,
        exact=exact,
        price=price,
        policy=policy,
        mode=mode,
    )
    loaded = read_dataflows(files or [], registry)
    make_importable(files or [])
    lines = LogLines(log, log_requests)
    with _network(listen, certificate, key) as network:
        from headgate.api.application import Door
        from headgate.api.sessions import Sessions

        door = Door(Sessions(), requests_per_s, note=lines.request)
        with supervised(settings.state, network, say=lines.say) as link, stop_signals(link.stopping):
            for each in network:
                lines.say(f"listening on {each.url}")

            def served_now(served: ServedEngine) -> None:
                if city is not None and network:
                    lines.say(f"open {network[0].url} and sign in with {city.token(served)}")

            with nullcontext() if city is None else city.living():
                limits = RunLimits(serve=True)
                result = run_engine(settings, loaded, limits, replace, link, lines, network, door, served_now)
    if result.failed:
        raise typer.Exit(FAILED)


def _city(files: Sequence[Path] | None) -> DemoCity:
    from headgate.service.demo import DemoCity

    if files:
        raise InputError("NOTHING_TO_RUN", "--demo brings its own dataflows; leave the files out")
    return DemoCity(DEMO_FOLDER)


@contextmanager
def _network(address: str | None, certificate: Path | None, key: Path | None) -> Iterator[tuple[NetworkListener, ...]]:
    """The sockets on the network, if there is to be one."""
    if (certificate is None) != (key is None):
        raise InputError("BAD_CERTIFICATE", "--tls-certificate and --tls-key belong together; give both or none")
    if address is None:
        if certificate is not None:
            raise InputError("BAD_ADDRESS", "--tls-certificate is for the network; say where with --listen HOST:PORT")
        yield ()
        return
    from headgate.api.network import Certificate, listening

    tls = None if certificate is None or key is None else Certificate(certificate, key)
    with listening(address, tls) as listener:
        if listener.is_exposed:
            sentence_to_stderr(
                f"{listener.url} is not encrypted: tokens can be read on the way. Use --tls-certificate."
            )
        yield (listener,)
