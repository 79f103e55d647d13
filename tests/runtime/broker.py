"""A real MQTT broker for tests, where mosquitto is installed, and somebody who listens to it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin:/opt/homebrew/sbin")
needs_broker = pytest.mark.skipif(MOSQUITTO is None, reason="no MQTT broker: mosquitto is not installed")


@contextmanager
def broker(folder: Path) -> Iterator[int]:
    """A broker on a port of its own, for as long as the block lasts."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    settings = folder / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n")
    process = subprocess.Popen(
        [str(MOSQUITTO), "-c", str(settings)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + 20
        while True:
            assert process.poll() is None, "the broker has ended"
            assert time.monotonic() < until, "the broker does not listen"
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def listening(port: int, topic: str) -> Iterator[list[tuple[str, bytes]]]:
    """What is published to a topic, as a client of its own hears it."""
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    heard: list[tuple[str, bytes]] = []
    ready: list[Any] = []
    client = Client(CallbackAPIVersion.VERSION2)
    client.on_message = lambda _, __, message: heard.append((message.topic, bytes(message.payload)))
    client.on_subscribe = lambda *_: ready.append(True)
    client.connect("127.0.0.1", port)
    client.loop_start()
    client.subscribe(topic, qos=1)
    until = time.monotonic() + 20
    while not ready:
        assert time.monotonic() < until
        time.sleep(0.01)
    try:
        yield heard
    finally:
        client.disconnect()
        client.loop_stop()
