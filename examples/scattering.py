"""The scattering transform of small pictures: wavelet moduli, averaged; features that nobody had to learn.

S. Mallat, Group invariant scattering (2012); J. Bruna and S. Mallat, Invariant scattering convolution networks (2013).
A picture is filtered by Morlet wavelets of `scales` octaves and `angles` directions, and the modulus is taken; each
modulus is filtered once more by the wavelets of coarser octaves; all are averaged over squares of 2^scales pixels. No
number here is fitted to data, so the features of a record depend on that record alone, and cost no privacy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import fft

Floats = NDArray[np.float32]
NARROW, CENTRE = 0.8, 0.75 * np.pi  # the width of the finest wavelet in pixels, and its frequency: Bruna and Mallat's
ALIASES = range(-2, 3)  # frequencies 2π apart are one on the grid; those further out are below float32


def scattering(pictures: NDArray[np.uint8], *, scales: int = 2, angles: int = 8, block: int = 500) -> Floats:
    """Scattering coefficients, (n, channels, rows, columns), of pictures (n, height, width) of 0 to 255.

    There are 1 + scales·angles + scales·(scales − 1)/2·angles² channels, and a position for each 2^scales pixels.

    Examples
    --------
    >>> flat = scattering(np.full((1, 28, 28), 255, dtype=np.uint8))
    >>> flat.shape
    (1, 81, 7, 7)
    >>> bool(np.allclose(flat[0, 0], 1, atol=1e-5)), bool(np.abs(flat[0, 1:]).max() < 1e-5)  # no edge, no response
    (True, True)
    """
    margin = 2**scales
    size = (pictures.shape[1] + 2 * margin, pictures.shape[2] + 2 * margin)
    low, waves = filters(size, scales=scales, angles=angles)
    parts = []
    for start in range(0, len(pictures), block):
        part = pictures[start : start + block].astype(np.float32) / 255
        parts.append(_block(np.pad(part, ((0, 0), (margin, margin), (margin, margin)), mode="reflect"), low, waves))
    return np.concatenate(parts)


def filters(size: tuple[int, int], *, scales: int, angles: int) -> tuple[Floats, Floats]:
    """The Fourier transforms of the averaging and, (scales, angles, height, width), of the wavelets; all are real."""
    waves = np.empty((scales, angles, *size), dtype=np.float32)
    for scale in range(scales):
        for angle in range(angles):
            centre, width = CENTRE / 2**scale, NARROW * 2**scale
            waves[scale, angle] = _morlet(size, width, centre, np.pi * angle / angles, slant=4 / angles)
    return _bump(size, NARROW * 2 ** (scales - 1), 0.0, 0.0, slant=1.0).astype(np.float32), waves


def _bump(size: tuple[int, int], width: float, centre: float, angle: float, *, slant: float) -> NDArray[np.float64]:
    """exp(−width²/2 · |ω − centre|²) in the frequencies of the grid; across the direction `slant` is narrower."""
    rows, columns = (2 * np.pi * fft.fftfreq(length) for length in size)
    found = np.zeros(size)
    for up in ALIASES:
        for right in ALIASES:
            y, x = np.meshgrid(rows + 2 * np.pi * up, columns + 2 * np.pi * right, indexing="ij")
            along, across = np.cos(angle) * x + np.sin(angle) * y - centre, np.cos(angle) * y - np.sin(angle) * x
            found += np.exp(-0.5 * width**2 * (along**2 + (across / slant) ** 2))
    return found


def _morlet(size: tuple[int, int], width: float, centre: float, angle: float, *, slant: float) -> NDArray[np.float64]:
    """A bump at `centre`, less so much of the one at 0 that a constant picture gives 0."""
    wave, still = _bump(size, width, centre, angle, slant=slant), _bump(size, width, 0.0, angle, slant=slant)
    return np.asarray(wave - still * (wave[0, 0] / still[0, 0]))


def _block(pictures: Floats, low: Floats, waves: Floats) -> Floats:
    """The coefficients of padded pictures; a modulus of octave j is kept on every 2^j-th pixel, averages on fewer."""
    scales, spectrum = len(waves), fft.fft2(pictures)
    found, deeper = [_average(spectrum, low, 2**scales)], []
    for scale, octave in enumerate(waves):
        coarse = _coarse(low, 2**scale)
        for wave in octave:
            inner = fft.fft2(np.abs(fft.ifft2(_thinned(spectrum * wave, 2**scale))))
            found.append(_average(inner, coarse, 2 ** (scales - scale)))
            for second in range(scale + 1, scales):
                least = _coarse(low, 2**second)
                for narrow in waves[second]:
                    outer = np.abs(fft.ifft2(_thinned(inner * _coarse(narrow, 2**scale), 2 ** (second - scale))))
                    deeper.append(_average(fft.fft2(outer), least, 2 ** (scales - second)))
    return np.stack(found + deeper, axis=1).astype(np.float32)


def _average(spectrum: NDArray[np.complex64], low: Floats, step: int) -> Floats:
    """Local averages around every `step`-th pixel, without the one on each side that stands in the margin."""
    return np.asarray(fft.ifft2(_thinned(spectrum * low, step)).real[:, 1:-1, 1:-1])


def _thinned(spectrum: NDArray[np.complex64], step: int) -> NDArray[np.complex64]:
    """The Fourier transform of every `step`-th pixel: the mean of what shares a frequency there."""
    *lead, rows, columns = spectrum.shape
    return np.asarray(spectrum.reshape(*lead, step, rows // step, step, columns // step).mean(axis=(-4, -2)))


def _coarse(kernel: Floats, step: int) -> Floats:
    """A filter for every `step`-th pixel: its frequencies are summed up where the grid cannot tell them apart."""
    rows, columns = kernel.shape
    return np.asarray(kernel.reshape(step, rows // step, step, columns // step).sum(axis=(0, 2)))
