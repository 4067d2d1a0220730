"""Where random words come from: AES-256 in counter mode, keyed by the operating system.

The stream is cut into megabytes, and each has a key of its own: a key that leaks tells nothing of earlier noise, and
telling a megabyte of it from ideal bits is as hard as breaking AES, up to 2⁻⁹⁷ (2¹⁶ blocks, PRP/PRF switching).
There is no fallback: without `cryptography` this module does not import.
"""

import hashlib
import os
import threading
import weakref
from collections.abc import Callable
from typing import NoReturn, Protocol, TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from privet._checks import is_whole, whole
from privet.errors import InvalidParameter

Words: TypeAlias = NDArray[np.uint64]

_CHUNK = 1 << 20  # bytes under one key
_ZEROS = memoryview(bytes(_CHUNK))  # encrypting zeros gives the key stream itself
_SPARE = 2  # words; releases of cryptography before 43 want a block of room after the output


class Random(Protocol):
    """A source of independent uniform 64-bit words, none of which it ever gives twice.

    `invalidates_guarantee` is True if the words can be predicted (a fixed seed): then no guarantee holds for what is
    drawn from it, and whoever writes a guarantee says so. It is False for a cryptographic generator alone; where it is
    neither, the guarantee is invalidated too.

    Examples
    --------
    >>> class Coins:
    ...     invalidates_guarantee = True  # anybody can repeat it
    ...     def words(self, count):
    ...         return np.zeros(count, dtype=np.uint64)
    >>> from privet.randomness import integers_below
    >>> int(integers_below(Coins(), 6, 1)[0])
    0
    """

    @property
    def invalidates_guarantee(self) -> bool:
        """Whether the words are predictable, so that no guarantee holds."""

    def words(self, count: int) -> Words:
        """Return the next `count` words, independent and uniform on 0 … 2⁶⁴ − 1."""


def why_invalid(random: Random) -> str:
    """Why no guarantee holds for what is drawn from `random`; empty if it says of itself that nobody can predict it.

    Examples
    --------
    >>> why_invalid(system_random()), why_invalid(fixed_seed_invalidates_guarantee(1))
    ('', 'fixed seed: whoever knows it can subtract the noise')
    """
    declared = getattr(random, "invalidates_guarantee", None)
    if declared is False:
        return ""
    if declared is True:
        return "fixed seed: whoever knows it can subtract the noise"
    return "a generator that does not declare itself cryptographic: whoever guesses its state can subtract the noise"


class _Stream:
    """One run of AES-256-CTR, with a new key each megabyte, for one process."""

    __slots__ = ("_cipher", "_keys", "_left", "_lock", "pid")

    def __init__(self, keys: Callable[[], bytes]) -> None:
        self._keys = keys
        self._lock = threading.Lock()
        self._cipher: CipherContext | None = None
        self._left = 0
        self.pid = os.getpid()

    def fill(self, target: memoryview, size: int) -> None:
        done = 0
        with self._lock:
            while done < size:
                if self._cipher is None or not self._left:
                    # Each key encrypts the counters from 0, once: as no key repeats, no block does.
                    self._cipher = Cipher(algorithms.AES(self._keys()), modes.CTR(bytes(16))).encryptor()
                    self._left = _CHUNK
                part = min(size - done, self._left)
                self._cipher.update_into(_ZEROS[:part], target[done:])
                done += part
                self._left -= part


class _AesCounter:
    """Words of a stream. `keys` makes its keys; what is repeatable invalidates a guarantee."""

    __slots__ = ("__weakref__", "_invalidates", "_keys", "_stream")

    def __init__(self, keys: Callable[[], bytes], *, invalidates: bool) -> None:
        self._keys = keys
        self._invalidates = invalidates
        self._stream = _Stream(keys)

    @property
    def invalidates_guarantee(self) -> bool:
        return self._invalidates

    def words(self, count: int) -> Words:
        count = whole("the number of words", count, least=0, because="there is no such array", use="Pass an int.")
        stream = self._stream
        if stream.pid != os.getpid() and not self._invalidates:  # a fork that Python did not see
            stream = self._restart()
        found = np.empty(count + _SPARE, dtype="<u8")
        stream.fill(found.view(np.uint8).data, 8 * count)
        return found[:count].astype(np.uint64, copy=False)

    def _restart(self) -> _Stream:
        # One assignment: threads that race here each go on with a stream, a lock and a key of their own.
        # The old lock is left alone: it may be held by a thread that the fork did not copy.
        self._stream = stream = _Stream(self._keys)
        return stream

    def __repr__(self) -> str:
        if self._invalidates:
            return "<AES-256-CTR words. NOT PRIVATE: fixed seed>"
        return "<AES-256-CTR words keyed by the operating system>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "Expected random state to stay where it is, got a request to copy or pickle it: noise drawn twice from one "
            "state cancels out, and a saved state lets whoever reads it subtract the noise. "
            "Save the model without it, and call system_random() again after loading."
        )


_LIVE: weakref.WeakSet[_AesCounter] = weakref.WeakSet()
_FORKS_ARE_SEEN = threading.Event()


def _after_fork() -> None:
    for random in list(_LIVE):
        random._restart()


def _system_key() -> bytes:
    return os.urandom(32)


def system_random() -> Random:
    """Return a cryptographic source of words: AES-256-CTR, keyed by the operating system.

    Promise: no word is handed out twice, not by two threads, not by a parent and its forked children; the state is
    never copied, pickled or printed. Each megabyte has its own key from `os.urandom`, so that old noise cannot be
    reconstructed from memory read later. What cannot be promised in Python: that a dropped key is wiped from memory,
    and that a virtual machine cloned in the middle of a megabyte notices.

    Examples
    --------
    >>> random = system_random()
    >>> random
    <AES-256-CTR words keyed by the operating system>
    >>> random.invalidates_guarantee, random.words(3).dtype, bool((random.words(4) != random.words(4)).all())
    (False, dtype('uint64'), True)
    """
    if not _FORKS_ARE_SEEN.is_set():
        _FORKS_ARE_SEEN.set()
        if hasattr(os, "register_at_fork"):  # where there is no fork, there is nothing to register
            os.register_at_fork(after_in_child=_after_fork)
    random = _AesCounter(lambda: _system_key(), invalidates=False)  # by name: tests put keys that repeat in its place
    _LIVE.add(random)
    return random


def fixed_seed_invalidates_guarantee(seed: int) -> Random:
    """Return the same words every time, for tests and teaching: whatever is drawn from them has **no guarantee**.

    The words are AES-256-CTR with keys hashed (SHA-256) from the seed, so that tests run the code that is used in
    earnest. Copies and pickles are refused here too; a forked child repeats its parent.

    Examples
    --------
    >>> random = fixed_seed_invalidates_guarantee(7)
    >>> random, random.invalidates_guarantee
    (<AES-256-CTR words. NOT PRIVATE: fixed seed>, True)
    >>> [hex(word) for word in fixed_seed_invalidates_guarantee(7).words(2)]
    ['0x65ec5595bd1433dc', '0x2f0e6f43edaa0fee']
    """
    if not is_whole(seed):
        raise InvalidParameter(f"""Expected a whole number as seed, got {type(seed).__name__}: nobody could repeat the
            run. Pass an int.""")
    label = f"privet fixed seed {int(seed)} key ".encode()
    used = 0

    def key() -> bytes:
        nonlocal used
        used += 1
        return hashlib.sha256(label + str(used).encode()).digest()

    return _AesCounter(key, invalidates=True)


def stuck() -> RuntimeError:
    """Return the error for words that ideal bits would give with probability below 2⁻⁹⁰⁰ only."""
    return RuntimeError(
        "Expected random words, got a run that chance does not produce: the source is broken, and nothing drawn from "
        "it is private. Use system_random()."
    )
