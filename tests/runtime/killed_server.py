"""``headgate`` as a process that does not outlive the test that started it, the leader of a session."""

from __future__ import annotations

import os
import threading

from headgate.cli.main import main
from tests.runtime.killed_engine import die_with

if __name__ == "__main__":
    threading.Thread(target=die_with, args=(os.getppid(),), daemon=True).start()
    main()
