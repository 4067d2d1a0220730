"""Noise for tensors: normal, of the stddev that was asked for, never used twice, never saved."""

from __future__ import annotations

import copy
import io
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch")

import privet  # noqa: E402
from privet.errors import InvalidParameter  # noqa: E402
from privet.randomness import Words, fixed_seed_invalidates_guarantee, system_random  # noqa: E402
from privet.torch import FloatNoise, LatticeNoise, NoiseAhead, normal_pairs  # noqa: E402
from privet.torch.normal_pairs import PAIRS, fill_compiled, fill_plain, loops  # noqa: E402

WAYS = ["compiled", "plain"]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Noise by compiled loops, and by NumPy."""
    made = loops() if request.param == "compiled" else None
    if request.param == "compiled" and made is None:
        pytest.skip("Numba is not installed")
    monkeypatch.setattr(FloatNoise, "_loops", lambda self, size: made)
    return str(request.param)


def drawn(seed: int, size: int, stddev: float = 1.0) -> np.ndarray:
    out = torch.empty(size)
    FloatNoise(fixed_seed_invalidates_guarantee(seed)).fill(out, stddev)
    return np.asarray(out.numpy())


def p_value(noise: np.ndarray, stddev: float) -> float:
    """The least p value, times their number, of seven tests that coordinates are independent normals of this stddev.

    Mean, variance, fourth moment, Kolmogorov and Smirnov's distance; correlations of the two halves of a block, which
    share radius and angle, of their squares, and of neighbours.
    """
    z = noise.astype(np.float64) / stddev
    root = np.sqrt(z.size)
    halves = z[: z.size // (2 * PAIRS) * 2 * PAIRS].reshape(-1, 2, PAIRS)
    first, second = halves[:, 0].reshape(-1), halves[:, 1].reshape(-1)
    scores = [
        z.mean() * root,
        (np.mean(z**2) - 1) * root / np.sqrt(2),
        (np.mean(z**4) - 3) * root / np.sqrt(96),
        np.mean(first * second) * np.sqrt(first.size),
        np.mean((first**2 - 1) * (second**2 - 1)) * np.sqrt(first.size) / 2,
        np.mean(z[1:] * z[:-1]) * root,
    ]
    values = [2 * float(stats.norm.sf(abs(score))) for score in scores]
    return min(1.0, 7 * min(*values, float(stats.kstest(z, "norm").pvalue)))


@pytest.mark.medium
def test_noise_is_independent_normals_of_the_stddev_asked_for(way: str) -> None:
    """False-positive rate 1e-6; 655,360 coordinates.

    With power 0.99 it catches a standard deviation that is off by 0.7 %, a correlation of 0.013 and a distance of
    0.004 between distribution functions.
    """
    assert p_value(drawn(1, 20 * PAIRS, 0.7), 0.7) > 1e-6


@pytest.mark.medium
def test_the_test_of_normals_catches_mutants() -> None:
    """Noise halved, 1 % too small, cut at 3, uniform, of one angle, or with its halves the same: each has p < 1e-6."""
    good = drawn(2, 20 * PAIRS)
    assert p_value(good, 1.0) > 1e-6
    blocks = good.reshape(-1, 2, PAIRS)
    radius = np.sqrt((blocks**2).sum(axis=1, keepdims=True))
    mutants = {
        "halved": good / 2,
        "a hundredth less": good * 0.99,
        "cut": np.clip(good, -3, 3),
        "uniform": (stats.norm.cdf(good) - 0.5) * np.sqrt(12.0),
        "one angle": (np.sign(blocks) * radius / np.sqrt(2)).reshape(-1),
        "halves the same": np.repeat(blocks[:, :1], 2, axis=1).reshape(-1),
    }
    assert {name: p_value(noise, 1.0) < 1e-6 for name, noise in mutants.items()} == dict.fromkeys(mutants, True)


@pytest.mark.parametrize("way", WAYS)
def test_every_pair_of_numbers_gives_the_pair_of_normals_it_should(way: str) -> None:
    """Also at the ends: no zero reaches a logarithm, and no radius is above √(64 ln 2) = 6.66."""
    made = loops()
    if way == "compiled" and made is None:
        pytest.skip("Numba is not installed")
    ends = [0, -1, 1, 2**31 - 1, -(2**31), 2**30, -(2**30), 12345, -(2**24) - 1, 2**31 - 100]
    k, g = (part.reshape(-1).astype(np.int32) for part in np.meshgrid(ends, ends))
    x, y = np.empty((2, k.size), dtype=np.float32)
    scratch = np.empty((4, k.size), dtype=np.float32)
    if way == "compiled" and made is not None:
        fill_compiled(made, k, g, x, y, scratch, np.float32(1))
    else:
        fill_plain(k, g, x, y, scratch, np.float32(1))
    radius = np.copysign(np.sqrt(-2 * np.log(np.abs(k + 0.5) / 2.0**31)), k + 0.5)
    angle = np.pi / 2 * (g / 2.0**31)
    near = 2.0**-23 / np.maximum(np.abs(radius), 2.0**-12)  # u is known to 2⁻²⁵ near 1
    for found, wanted in ((x, radius * np.cos(angle)), (y, radius * np.sin(angle))):
        assert (np.abs(found - wanted) <= 1e-6 * np.abs(radius) + near).all()
    assert 6.65 < np.hypot(x, y).max() < 6.67
    assert abs(float(np.hypot(x, y).max()) - np.sqrt(64 * np.log(2))) < 1e-5


def test_polynomials_are_as_near_as_floats() -> None:
    """Within 3e-8 of √2 sin(πf/4)/f and of 2 artanh(t)/t, as normal_pairs.py says."""
    m = normal_pairs
    f2, t2 = np.linspace(1e-9, 1.0, 100_001), np.linspace(1e-9, (np.sqrt(2) - 1) ** 4, 100_001)
    sine = np.polyval([float(c) for c in (m._S3, m._S2, m._S1, m._S0)], f2)
    artanh = np.polyval([float(c) for c in (m._L3, m._L2, m._L1, m._L0)], t2)
    assert np.abs(sine / (np.sqrt(2) * np.sin(np.pi / 4 * np.sqrt(f2)) / np.sqrt(f2)) - 1).max() < 3e-8
    assert np.abs(artanh / (2 * np.arctanh(np.sqrt(t2)) / np.sqrt(t2)) - 1).max() < 3e-8


def test_a_compiler_that_is_wrong_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops that give a thousandth less noise fail the first test, and NumPy draws."""
    good = loops()
    if good is None:
        pytest.skip("Numba is not installed")

    def less(k: Any, g: Any, sizes: Any, exponents: Any, scale: Any, x: Any, y: Any) -> None:
        good.turn(k, g, sizes, exponents, np.float32(scale * 0.999), x, y)

    assert normal_pairs._right(good)
    assert not normal_pairs._right(good._replace(turn=less))
    monkeypatch.setattr(normal_pairs, "_compiled", lambda kept: good._replace(turn=less))
    assert loops.__wrapped__() is None


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 2 * PAIRS - 1, 2 * PAIRS, 2 * PAIRS + 1, 4 * PAIRS + 3])
def test_every_coordinate_gets_noise_of_its_own(way: str, size: int) -> None:
    """Whatever the size: none is left out, and none is another's; a second call repeats nothing."""
    noise = FloatNoise(fixed_seed_invalidates_guarantee(3))
    first, second, added = torch.full((size,), torch.nan), torch.full((size,), torch.nan), torch.zeros(size)
    noise.fill(first, 1.0)
    noise.fill(second, 1.0)
    noise.add_(added, 1.0)
    for tensor in (first, second, added):
        assert torch.isfinite(tensor).all()
        assert (tensor == 0).sum() == 0
        assert len(torch.unique(tensor)) >= 0.99 * size  # floats of 24 bits meet now and then
    for one, other in ((first, second), (first, added), (second, added)):
        assert (one == other).sum() <= 1  # of 1e5, by chance, one in a hundred runs


def test_a_seed_repeats_noise_and_invalidates_the_guarantee(way: str) -> None:
    """For tests only, and it says so; the cryptographic source says nothing."""
    assert np.array_equal(drawn(4, 1001), drawn(4, 1001))
    assert "fixed seed" in FloatNoise(fixed_seed_invalidates_guarantee(4)).why_invalid
    assert FloatNoise().why_invalid == LatticeNoise().why_invalid == ""
    assert "idealised Gaussian" in FloatNoise().assumptions[0]
    assert "idealised" not in LatticeNoise().assumptions[0]
    assert "float sums" in LatticeNoise().assumptions[0]


def test_both_ways_draw_the_same_up_to_rounding() -> None:
    """Compiled or not, a seed gives the same noise to 1e-5."""
    made = loops()
    if made is None:
        pytest.skip("Numba is not installed")
    words: Words = fixed_seed_invalidates_guarantee(5).words(PAIRS)
    k, g = words.view(np.int32).reshape(2, PAIRS)
    found = np.empty((4, PAIRS), dtype=np.float32)
    scratch = np.empty((4, PAIRS), dtype=np.float32)
    fill_compiled(made, k, g, found[0], found[1], scratch, np.float32(2))
    fill_plain(k, g, found[2], found[3], scratch, np.float32(2))
    assert np.abs(found[:2] - found[2:]).max() < 1e-5


def test_threads_share_no_noise(way: str) -> None:
    """Eight threads draw from one source at once: no two of their tensors agree in more than chance places."""
    noise, size = FloatNoise(), 3 * PAIRS
    out = torch.zeros(8, size)
    threads = [threading.Thread(target=noise.fill, args=(row, 1.0)) for row in out]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(torch.unique(out)) > 0.97 * out.numel()
    assert abs(float(out.std()) - 1) < 0.01  # 11 standard deviations
    blocks = np.abs(np.corrcoef(out.view(-1, PAIRS).numpy()) - np.eye(24))
    assert blocks.max() < 0.045  # 8 standard deviations


def test_noise_of_small_tensors_is_used_once(way: str) -> None:
    """That of several calls is drawn at once: whatever sizes and standard deviations take turns, none comes again."""
    noise, sizes = FloatNoise(), [1000, 1000, 7, 1000, PAIRS, 1000, PAIRS + 1]
    parts = [torch.zeros(size) for _ in range(20) for size in sizes]
    for number, part in enumerate(parts):
        noise.add_(part, 1.0 + number % 2)
    units = torch.cat([part / (1.0 + number % 2) for number, part in enumerate(parts)])
    assert abs(float(units.std()) - 1) < 0.01  # 15 standard deviations
    assert len(torch.unique(units)) > 0.9 * len(units)  # floats of 24 bits meet now and then
    thousands = torch.stack([part for part in parts if len(part) == 1000]).numpy()
    assert np.abs(np.corrcoef(thousands) - np.eye(len(thousands))).max() < 0.3  # 9 standard deviations


def test_threads_share_no_noise_of_small_tensors() -> None:
    """Eight threads take noise from what one source has drawn for several calls: no tensor is another's."""
    noise, out = FloatNoise(), torch.zeros(8, 50, 500)

    def take(rows: Any) -> None:
        for row in rows:
            noise.add_(row, 1.0)

    threads = [threading.Thread(target=take, args=(rows,)) for rows in out]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(torch.unique(out.view(-1, 500)[:, 0])) == 400
    assert np.abs(np.corrcoef(out.view(-1, 500).numpy()) - np.eye(400)).max() < 0.5  # 11 standard deviations


FORK = """
import os, sys, torch
from privet.torch import FloatNoise, NoiseAhead
import privet.torch.noise_ahead as module
module._cores = lambda: 2
size = 100_000 if sys.argv[1] != "spare" else 1000
noise = FloatNoise()
ahead = NoiseAhead(noise, size)
ahead.prepare()
if sys.argv[1] == "done":
    ahead._pending.result()
def show():
    for _ in range(2):
        out = torch.zeros(size)
        if sys.argv[1] == "spare":
            noise.add_(out, 1.0)
        else:
            ahead.add_([out], 1.0)
        print(*out[:: size // 10 - 27].tolist(), sep="\\n", flush=True)
if sys.argv[1] == "spare":
    noise.add_(torch.zeros(size), 1.0)
for child in range(2):
    if os.fork() == 0:
        show()
        ahead.prepare()
        os._exit(0)
    os.wait()
show()
"""


@pytest.mark.medium
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("state", ["done", "drawing", "spare"])
def test_forked_children_use_noise_of_their_own(state: str) -> None:
    """Noise drawn ahead, being drawn, or left at a fork is the parent's: children wait for none, repeat nothing."""
    command = [sys.executable, "-W", "ignore", "-c", FORK, state]
    here = os.environ | {"PYTHONPATH": str(Path(privet.__file__).parents[1])}
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100, env=here)
    shown = run.stdout.split()
    assert len(shown) == 3 * 2 * (14 if state == "spare" else 11)
    assert len(set(shown)) == len(shown)


@pytest.mark.parametrize("make", [FloatNoise, LatticeNoise, lambda: NoiseAhead(FloatNoise(), 5)])
def test_noise_is_never_copied_or_saved(make: Callable[[], Any]) -> None:
    """Pickle, copy, deepcopy and torch.save are refused, inside a checkpoint too."""
    noise = make()
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy, lambda value: torch.save({"noise": value}, io.BytesIO())):
        with pytest.raises(TypeError, match="noise that is used twice"):
            attempt(noise)


@pytest.mark.parametrize("stddev", [0, -1.0, float("nan"), float("inf"), None, "1", True, 1e-30, 1e30])
def test_a_stddev_that_promises_nothing_is_refused(stddev: Any) -> None:
    """Before anything is written; so is one that float32 does not hold."""
    tensor = torch.zeros(3)
    ahead = NoiseAhead(FloatNoise(), 3)
    for call in (FloatNoise().fill, FloatNoise().add_, LatticeNoise().add_, lambda t, s: ahead.add_([t], s)):
        with pytest.raises(InvalidParameter, match="stddev"):
            call(tensor, stddev)
    assert (tensor == 0).all()


@pytest.mark.parametrize("stddev", [2.0**-40, 1e-6, 1e6, 2.0**40])
def test_stddevs_of_all_sizes_are_met(way: str, stddev: float) -> None:
    """From 2⁻⁴⁰ to 2⁴⁰: 60,000 coordinates, within 8 standard deviations of the estimate; and the rest rounds up."""
    assert abs(drawn(6, 60_000, stddev).astype(float).std() / stddev - 1) < 8 / np.sqrt(2 * 60_000)


@pytest.mark.parametrize("make", [FloatNoise, LatticeNoise])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_noise_is_added_in_float32_whatever_the_type(make: Any, dtype: str) -> None:
    """Sums of more bits are rounded first: the lowest bits of a float64 would be left bare."""
    tensor = torch.full((2000,), 1 + 2.0**-40, dtype=getattr(torch, dtype))
    make(fixed_seed_invalidates_guarantee(7)).add_(tensor, 0.5)
    assert torch.equal(tensor.double(), tensor.float().double())
    assert abs(float(tensor.double().mean()) - 1) < 0.1
    assert 0.4 < float(tensor.double().std()) < 0.6
    with pytest.raises(InvalidParameter, match="floats"):
        make().add_(torch.zeros(3, dtype=torch.int64), 1.0)
    if dtype != "float32" and make is FloatNoise:
        with pytest.raises(InvalidParameter, match="float32 tensor"):
            FloatNoise().fill(tensor, 1.0)


@pytest.mark.parametrize("make", [FloatNoise, LatticeNoise])
def test_tensors_of_all_layouts_get_noise(make: Any) -> None:
    """Transposed, strided, of no dimension, or parameters: each number gets its own, and no other number is touched."""
    whole = torch.zeros(40, 30)
    for view in (whole.t(), whole[::2, ::3], whole[3], whole[:, 5], whole[7, 7]):
        whole.zero_()
        make().add_(view, 1.0)
        assert int((whole != 0).sum()) == view.numel()
        if make is FloatNoise:
            FloatNoise().fill(view, 1.0)
            assert int((whole != 0).sum()) == view.numel()
    weight = torch.nn.Parameter(torch.zeros(50))
    make().add_(weight, 1.0)
    assert weight.requires_grad
    assert len(torch.unique(weight.detach())) == 50


def test_noise_drawn_ahead_is_used_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prepared or not, once or twice: each step has noise of its own, of the stddev of that step."""
    monkeypatch.setattr("privet.torch.noise_ahead._cores", lambda: 2)
    ahead = NoiseAhead(FloatNoise(), 30_000)
    steps = torch.zeros(4, 30_000)
    ahead.prepare()
    ahead.prepare()
    for row, stddev in zip(steps, (1.0, 1.0, 5.0, 1e-3), strict=True):
        ahead.add_([row[:10_000].view(100, 100), row[10_000:]], stddev)
        if stddev == 5.0:
            ahead.prepare()
    for row, stddev in zip(steps, (1.0, 1.0, 5.0, 1e-3), strict=True):
        assert abs(float(row.std()) / stddev - 1) < 0.04  # 9 standard deviations
    assert np.abs(np.corrcoef(steps.numpy()) - np.eye(4)).max() < 0.05
    with pytest.raises(InvalidParameter, match="left without noise"):
        ahead.add_([torch.zeros(29_999)], 1.0)


def test_a_failure_while_drawing_ahead_shows_and_leaves_no_noise_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step that waited for it fails without a number written; the next one draws anew."""
    monkeypatch.setattr("privet.torch.noise_ahead._cores", lambda: 2)

    class Broken:
        invalidates_guarantee = False
        works = False

        def words(self, count: int) -> Words:
            if not self.works:
                raise RuntimeError("no entropy")
            return system_random().words(count)

    source = Broken()
    ahead, tensor = NoiseAhead(FloatNoise(source), 100), torch.zeros(100)
    ahead.prepare()
    with pytest.raises(RuntimeError, match="no entropy"):
        ahead.add_([tensor], 1.0)
    assert (tensor == 0).all()
    source.works = True
    ahead.add_([tensor], 1.0)
    assert len(torch.unique(tensor)) == 100


def test_a_seeded_run_is_the_same_with_noise_ahead() -> None:
    """Words of a seed are drawn in the order of the program, whatever a thread might have drawn meanwhile."""
    found = []
    for prepared in (True, False):
        random = fixed_seed_invalidates_guarantee(8)
        ahead, tensor = NoiseAhead(FloatNoise(random), 100), torch.zeros(100)
        if prepared:
            ahead.prepare()
        batch = random.words(1)[0]
        ahead.add_([tensor], 1.0)
        found.append((batch, tensor.tolist()))
    assert found[0] == found[1]


@pytest.mark.medium
def test_lattice_noise_is_normal_around_the_sum() -> None:
    """As for float noise, seven tests, false-positive rate 1e-6; blocks of 262,144 have noise of their own."""
    tensor = torch.full((20 * PAIRS,), 3.0)
    LatticeNoise(fixed_seed_invalidates_guarantee(9)).add_(tensor, 0.7)
    assert p_value(tensor.double().numpy() - 3.0, 0.7) > 1e-6
    assert p_value(tensor.double().numpy() - 3.0, 1.4) < 1e-6


@pytest.mark.parametrize("value", [0.0, 1.0, 1e-12, float(np.float32(1 / 3)), -7.7e3])
def test_lattice_noise_leaves_no_trace_of_a_sums_last_bits(value: float) -> None:
    """What is released is on one lattice, that of the noise, whatever the sum was; float noise is not."""
    tensor, floats = torch.full((5000,), value), torch.full((5000,), value)
    LatticeNoise(fixed_seed_invalidates_guarantee(10)).add_(tensor, 1.0)
    FloatNoise(fixed_seed_invalidates_guarantee(10)).add_(floats, 1.0)
    on_lattice = [torch.equal(t.double() * 2**20, (t.double() * 2**20).round()) for t in (tensor, floats)]
    assert on_lattice[0]
    assert on_lattice[1] == (abs(value) > 1e3)  # float32 itself is coarser there


def test_lattice_noise_is_silent_about_odd_sums() -> None:
    """Not a number, infinite or huge: no error, no warning, and a finite release where that is possible."""
    tensor = torch.tensor([torch.nan, torch.inf, -torch.inf, 3e38, -3e38, 0.0])
    LatticeNoise(fixed_seed_invalidates_guarantee(11)).add_(tensor, 1.0)
    assert torch.isfinite(tensor).all()
    assert abs(float(tensor[0])) < 7
    assert abs(float(tensor[5])) < 7
