"""Gaussian noise for float32 tensors, from the library's cryptographic words."""

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, NoReturn

import numpy as np
import torch

from privet._checks import between
from privet.errors import InvalidParameter
from privet.randomness import Random, system_random, why_invalid
from privet.randomness.lineage import lineage
from privet.torch.normal_pairs import PAIRS, Loops, Singles, fill_compiled, fill_plain, loops

IDEALISED = (
    "idealised Gaussian: noise was drawn and added in float32, whose roundings and gaps the proof leaves out, and none "
    "of it is beyond 6.66 standard deviations"
)
"""What a guarantee rests on where noise is in floats."""

_WORTH_LOADING = 1 << 22  # coordinates that pay for loading the compiler, a fifth of a second
_SPARE = 1.0 + 2.0**-20  # on the standard deviation: above what roundings may take from it
_LEAST, _LARGEST = 2.0**-40, 2.0**40  # squares and tiny radii of these are plain float32 numbers


class _Spare(NamedTuple):
    """Standard normals that nobody has used yet, in pieces of one size; never of a seed, whose words come in order."""

    process: tuple[int, int]
    size: int
    pieces: list[torch.Tensor]


class FloatNoise:
    """Independent normals in float32, from AES-CTR words by Box and Muller's method.

    Where Numba is installed a coordinate takes less than half the time of PyTorch's `normal_`, else about as long. The
    two ways differ in roundings, of 1e-6 or so, and the first one begins once its loops are worth loading.

    Promise: each coordinate is made from words that are used once, whatever threads and forks do; what is drawn has at
    least the standard deviation that is asked for, which is raised by 2⁻²⁰ for that. Nothing of it can be copied,
    pickled or put into a checkpoint.
    Assumed, and said in `assumptions`: that float32 noise hides like the ideal one. It is no proof of that: a pair of
    coordinates has 2⁶⁴ values, radii stop at √(64 ln 2) = 6.66 standard deviations (PyTorch's own at 5.77; an ideal
    pair is beyond with chance 2⁻³²), and floats have gaps from which sums can be told apart in principle (Mironov 2012;
    docs/footguns.md, 1). `LatticeNoise` needs no such assumption for its noise.

    Parameters
    ----------
    random : the source of words, `system_random()` if left out

    Examples
    --------
    >>> noise, gradient = FloatNoise(), torch.zeros(100_000)
    >>> noise.add_(gradient, 2.0)
    >>> f"{gradient.std():.1f}"
    '2.0'
    """

    __slots__ = ("_checked", "_drawn", "_spare", "random")

    assumptions: tuple[str, ...] = (IDEALISED,)

    def __init__(self, random: Random | None = None) -> None:
        self.random = system_random() if random is None else random
        self._drawn = 0
        self._checked = (0.0, np.float32(0.0))  # the stddev of the last call, and what is drawn for it
        self._spare = _Spare((0, 0), 0, [])

    @property
    def why_invalid(self) -> str:
        """Why no guarantee holds for what is drawn here; empty if one does."""
        return why_invalid(self.random)

    def fill(self, out: torch.Tensor, stddev: float) -> None:
        """Overwrite a float32 tensor, on any device, with noise."""
        if out.dtype != torch.float32:
            raise InvalidParameter(f"""Expected a float32 tensor to fill, got {out.dtype}: added to a sum of more bits
                the noise leaves the lowest bare, and in one of fewer it is lost. Use add_(), which adds in float32.""")
        scale = check_stddev(stddev)
        with torch.no_grad():
            if out.device.type == "cpu" and out.is_contiguous():
                self.fill_array(out.detach().view(-1).numpy(), scale)
            else:
                drawn = torch.empty(out.shape)
                self.fill_array(drawn.view(-1).numpy(), scale)
                out.copy_(drawn)

    def add_(self, tensor: torch.Tensor, stddev: float) -> None:
        """Add noise to a tensor of floats, in place: in float32, whatever its type, and back."""
        if type(stddev) is not float or stddev != self._checked[0]:
            self._checked = stddev, check_stddev(stddev)
        scale, flat = self._checked[1], as_float32(tensor)
        if 0 < flat.numel() <= PAIRS and flat.device.type == "cpu" and not self.why_invalid:
            flat.add_(self._piece(flat.numel()), alpha=float(scale))
            write_back(tensor, flat)
            return
        here = flat.cpu().numpy()  # the same memory, unless it is on another device
        block = np.empty(min(2 * PAIRS, here.size), dtype=np.float32)
        for start in range(0, here.size, 2 * PAIRS):
            part = here[start : start + 2 * PAIRS]
            drawn = block[: part.size]
            self.fill_array(drawn, scale)
            part += drawn
        if flat.device.type != "cpu":
            flat.copy_(torch.from_numpy(here))
        write_back(tensor, flat)

    def _piece(self, size: int) -> torch.Tensor:
        """Standard normals for one caller; where they are few, those of several calls are drawn at once.

        Each piece is taken out of its list, which one thread alone can do, and lists are of one process.
        """
        spare, process = self._spare, lineage()
        if spare.process == process and spare.size == size:
            with suppress(IndexError):
                return spare.pieces.pop()
        drawn = torch.empty(2 * PAIRS // size * size)
        self.fill_array(drawn.numpy(), UNIT)
        pieces = list(torch.split(drawn, size))
        mine = pieces.pop()
        self._spare = _Spare(process, size, pieces)
        return mine

    def fill_array(self, out: Singles, scale: np.float32) -> None:
        """Overwrite an array in one piece with noise of a stddev that was checked, for threads of ours.

        Scratch is of this call alone: two threads that shared some would share noise.
        """
        made = self._loops(out.size)
        scratch = np.empty((4 if made is None else 2, min(PAIRS, (out.size + 1) // 2)), dtype=np.float32)
        for start in range(0, out.size, 2 * PAIRS):
            part = out[start : start + 2 * PAIRS]
            pairs = (part.size + 1) // 2
            room = part if part.size == 2 * pairs else np.empty(2 * pairs, dtype=np.float32)
            halves = self.random.words(pairs).view(np.int32)
            parts = (halves[:pairs], halves[pairs:], room[:pairs], room[pairs:], scratch, scale)
            if made is not None:
                fill_compiled(made, *parts)
            else:
                fill_plain(*parts)
            if room is not part:
                part[:] = room[: part.size]

    def _loops(self, size: int) -> Loops | None:
        self._drawn += size
        return loops() if self._drawn >= _WORTH_LOADING or loops.cache_info().currsize else None

    def __repr__(self) -> str:
        return f"FloatNoise({self.random!r})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise no_copy()


def check_stddev(stddev: float) -> np.float32:
    """Return the standard deviation to draw: a float32, raised to make up for roundings; refuse what is none."""
    because, use = "without noise nothing is private, and float32 holds no more", "Set it from the plan."
    asked = between("stddev", stddev, _LEAST, _LARGEST, closed=(True, True), because=because, use=use)
    return np.float32(np.nextafter(np.float32(asked * _SPARE), np.float32(math.inf)))


UNIT = check_stddev(1.0)


def in_one_row(tensors: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    """Return the tensors themselves, or, where they are float32 and fill one piece of memory in order, that as one.

    Examples
    --------
    >>> row = torch.arange(6.0)
    >>> in_one_row([row[:4].view(2, 2), row[4:]])
    (tensor([0., 1., 2., 3., 4., 5.]),)
    >>> len(in_one_row([row[4:], row[:4]]))
    2
    """
    if not tensors:
        return tensors
    start = end = tensors[0].data_ptr()
    memory = tensors[0].untyped_storage().data_ptr()
    for tensor in tensors:
        fits = tensor.data_ptr() == end and tensor.dtype == torch.float32 and tensor.is_contiguous()
        if not fits or tensor.untyped_storage().data_ptr() != memory:
            return tensors
        end += 4 * tensor.numel()
    return (tensors[0].detach().as_strided(((end - start) // 4,), (1,), tensors[0].storage_offset()),)


def as_float32(tensor: torch.Tensor) -> torch.Tensor:
    """Return the values of `tensor` as one row of float32, the same memory where it can be."""
    if tensor.dtype == torch.float32 and tensor.dim() == 1:
        return tensor.detach()
    if not tensor.is_floating_point():
        raise InvalidParameter(f"""Expected a tensor of floats, got {tensor.dtype}: noise would be rounded away. Convert
            the sum to float32 first.""")
    return tensor.detach().to(torch.float32).reshape(-1)


def write_back(tensor: torch.Tensor, flat: torch.Tensor) -> None:
    """Write what `as_float32` returned back into `tensor`, unless it is the same memory."""
    if tensor.dtype != torch.float32 or not tensor.is_contiguous():
        with torch.no_grad():
            tensor.copy_(flat.view(tensor.shape))


def no_copy() -> TypeError:
    """Return the error for what must not be copied or saved."""
    return TypeError(
        "Expected noise to stay where it is, got a request to copy or pickle it: noise that is used twice cancels out, "
        "and a saved one can be subtracted. Save the model without it, and make it anew after loading."
    )
