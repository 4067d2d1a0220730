"""Hands the tables to diffprivlib, which runs in a process and an environment of its own: `accuracy_peer.py`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_tables import EPSILONS, SLOW, Table

HERE = Path(__file__).resolve().parent
PEER_PYTHON = HERE.parent / ".venv-peers" / "bin" / "python"
Results = dict[str, Any]


def start_peer(folder: Path, tables: Sequence[Table], runs: int) -> subprocess.Popen[bytes] | None:
    """Hand the tables over and let diffprivlib begin, in its own process and environment."""
    if not PEER_PYTHON.exists():
        print("no .venv-peers: `make bench-accuracy` builds it; going on without the peer")
        return None
    free = shutil.disk_usage(folder).free
    orders = []
    for table in sorted(tables, key=lambda t: t.X.size):
        if 4 * (table.X.size + table.X_test.size) > free / 2:
            continue
        np.savez(
            folder / f"{table.name}.npz",
            X=table.features(table.X).astype(np.float32),
            X_test=table.features(table.X_test).astype(np.float32),
            y=table.y,
            y_test=table.y_test,
            low=table.low,
        )
        orders.append(peer_order(table, runs))
    (folder / "orders.json").write_text(json.dumps(orders), encoding="utf-8")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen([PEER_PYTHON, HERE / "accuracy_peer.py", folder], env=environment)


def peer_order(table: Table, runs: int) -> Results:
    """What the peer may choose among; wider where it is fast, and one run a setting where it is very slow."""
    order = {"name": table.name, "classes": table.classes, "epsilons": EPSILONS, "trials": 3, "runs": runs}
    if not table.classes:
        grid: list[Results] = [{"columns": "all"}, {"columns": "numbers"}]
    elif table.name == "mnist":
        grid = [{"C": c, "data_norm": table.norm / 3} for c in (1e-5, 1e-4, 1e-3, 1e-2)]
        grid.append({"C": 1e-4, "data_norm": table.norm / 6})
        order |= {"trials": 1, "runs": 0}
    else:
        norms = [table.norm] if table.bounds is None else [table.norm, table.norm / 3]
        grid = [{"C": c, "data_norm": n, "max_iter": 200} for n in norms for c in (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)]
        order |= {"trials": 1} if table.name in SLOW else {}
    return order | {"grid": grid}


def finish_peer(peer: subprocess.Popen[bytes] | None, folder: Path, patience: float = 1800.0) -> Results:
    """What the peer has found; what it has not within half an hour is left out."""
    if peer is None:
        return {}
    try:
        peer.wait(timeout=patience)
    except subprocess.TimeoutExpired:
        print("the peer is not done; what it has is kept")
    answers = folder / "answers.json"
    return dict(json.loads(answers.read_text(encoding="utf-8"))) if answers.exists() else {}
