"""``headgate`` with an aim: the command, killed at the moment that ``HEADGATE_TEST_AIM`` names.

Run as a process of its own, the leader of a session; see :mod:`tests.runtime.killed_engine` for the aims.
"""

from __future__ import annotations

import os
import threading

from headgate.cli.main import main
from tests.runtime.killed_engine import _die_with, take_aim

if __name__ == "__main__":
    threading.Thread(target=_die_with, args=(os.getppid(),), daemon=True).start()
    if "HEADGATE_TEST_AIM" in os.environ:
        take_aim(os.environ["HEADGATE_TEST_AIM"])
    main()
