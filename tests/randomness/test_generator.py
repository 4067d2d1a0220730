from __future__ import annotations

import ast
import copy
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import privet
from privet.errors import InvalidParameter
from privet.randomness import Random, fixed_seed_invalidates_guarantee, system_random

SOURCE = Path(privet.__file__).parent

FORK = """
import ctypes, os, sys
from privet.randomness import system_random
random = system_random()
random.words(5)
fork = os.fork if sys.argv[1] == "python" else ctypes.CDLL(None).fork
for child in range(3):
    if fork() == 0:
        sys.stdout.write(f"{random.words(1)[0]} {random.words(1)[0]}\\n")
        sys.stdout.flush()
        os._exit(0)
    os.wait()
print(random.words(1)[0], random.words(1)[0])
"""


@pytest.mark.parametrize("way", ["python", "libc"])
def test_forked_children_draw_words_of_their_own(way: str) -> None:
    """Three children and their parent share no word, also after a fork that Python does not see."""
    run = subprocess.run([sys.executable, "-c", FORK, way], capture_output=True, text=True, check=True)
    drawn = run.stdout.split()
    assert len(drawn) == 8
    assert len(set(drawn)) == 8


@pytest.mark.parametrize("make", [system_random, lambda: fixed_seed_invalidates_guarantee(1)])
def test_state_is_never_saved_copied_or_shown(make: type[Random]) -> None:
    """Pickle, copy and deepcopy are refused, inside other objects too, and repr shows no state."""
    random = make()
    shown = repr(random)
    random.words(3)
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"call system_random\(\) again"):
            attempt(random)
    with pytest.raises(TypeError, match="noise drawn twice"):
        pickle.dumps({"model": np.zeros(3), "random": random})
    assert repr(random) == shown
    assert not hasattr(random, "__dict__")


def test_two_resumes_draw_different_noise() -> None:
    """Whoever resumes must make a new source, and two of them share nothing."""
    assert not set(system_random().words(1000).tolist()) & set(system_random().words(1000).tolist())


@pytest.mark.parametrize("module", ["privet.randomness", "privet.noise"])
def test_without_cryptography_there_is_an_import_error(module: str) -> None:
    """A missing package is an error, never a weaker generator."""
    code = (
        f"import sys; sys.modules['cryptography'] = None\ntry:\n import {module}\nexcept ImportError: print('refused')"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["refused"]


def test_no_other_generator_and_no_log_is_in_reach() -> None:
    """Noise and batches use no generator but AES-CTR, and neither print nor log anything."""
    files = [*(SOURCE / "randomness").glob("*.py"), *(SOURCE / "noise").glob("*.py")]
    assert len(files) > 5
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert not {"random", "secrets", "logging", "warnings"} & {a.name.split(".")[0] for a in node.names}
            if isinstance(node, ast.ImportFrom):
                assert node.module is not None
                assert node.module.split(".")[0] not in {"random", "logging", "warnings"}
            if isinstance(node, ast.Attribute):
                assert not (node.attr == "random" and isinstance(node.value, ast.Name) and node.value.id == "np")
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"print", "open"}


def test_a_fixed_seed_invalidates_the_guarantee_and_says_so() -> None:
    """Seeded words repeat, carry `invalidates_guarantee`, and say NOT PRIVATE wherever they are shown."""
    first, second, other = (fixed_seed_invalidates_guarantee(seed) for seed in (7, 7, 8))
    assert (first.words(100) == second.words(100)).all()
    assert (first.words(100) != other.words(100)).all()
    assert first.invalidates_guarantee
    assert "NOT PRIVATE: fixed seed" in repr(first)
    assert not system_random().invalidates_guarantee


def test_words_do_not_depend_on_how_they_are_asked_for() -> None:
    """One by one, in odd pieces, or across many keys at once: the same stream, and no word twice."""
    total = 400_000  # over three keys of 2^17 words
    whole = fixed_seed_invalidates_guarantee(3).words(total)
    pieces = fixed_seed_invalidates_guarantee(3)
    sizes = [1, 0, 7, 131_072, 1, 100_001, 131_071]
    parts = [pieces.words(size) for size in sizes]
    assert (np.concatenate(parts) == whole[: sum(sizes)]).all()
    assert np.unique(whole).size == total


def test_threads_share_no_word() -> None:
    """Eight threads on one source get, together, exactly the words that one thread would have got."""
    random, found = fixed_seed_invalidates_guarantee(5), list[int]()
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        mine = [word for _ in range(200) for word in random.words(100).tolist()]
        found.extend(mine)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(fixed_seed_invalidates_guarantee(5).words(160_000).tolist())


@pytest.mark.medium
def test_every_bit_is_fair_and_independent_of_the_next_word() -> None:
    """False positive rate 1e-7 × 128; 2^20 words; a bias or correlation of 0.0040 is caught with power 0.99.

    Mutant: a bit that is set with probability 0.505.
    """
    threshold = 5.4 * 0.5 / 2**10

    def is_fair(words: np.ndarray) -> bool:
        bits = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1).astype(np.int8)
        means = bits.mean(axis=0) - 0.5
        agree = (bits[1:] == bits[:-1]).mean(axis=0) - 0.5
        return bool((abs(means) < threshold).all() and (abs(agree) < threshold).all())

    random = fixed_seed_invalidates_guarantee(11)
    words = random.words(2**20)
    assert is_fair(words)
    sometimes = np.where(random.words(2**20) < 0.01 * 2**64, np.uint64(1 << 17), np.uint64(0))
    assert not is_fair(words | sometimes)


@pytest.mark.parametrize("count", [-1, 1.5, True, "3", None])
def test_a_wrong_count_is_refused(count: int) -> None:
    """Counts are whole numbers, at least 0."""
    with pytest.raises(InvalidParameter, match="number of words to be a whole number of at least 0"):
        system_random().words(count)


@pytest.mark.parametrize("seed", [1.5, "secret", None, True])
def test_a_wrong_seed_is_refused_and_not_quoted(seed: int) -> None:
    """A seed is a whole number; what was passed instead is not repeated in the message."""
    with pytest.raises(InvalidParameter, match="whole number as seed") as caught:
        fixed_seed_invalidates_guarantee(seed)
    assert "secret" not in str(caught.value)
