"""How a layer used a parameter: from what went in and what came back follow norms and weighted sums of gradients.

A use never forms an ordinary gradient. It knows, for each example, the squared norm of that example's gradient, and for
factors c the sum Σ cᵢ gᵢ, each by the cheapest exact way. Row i of every tensor belongs to example i.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from privet.torch.scratch import Scratch

BELOW = 1 - 2.0**-17  # a shortened gradient ends a little below the clip, so that rounding does not exceed it
LEAST = 2.0**-120  # a factor below this is nothing: float32 would not hold it well
NARROW = 32  # columns below which a product is several times faster the other way round
GHOST = 24  # a Gram matrix of T positions is cheaper than writing p × d numbers and reading them twice; measured


class Use(Protocol):
    """One way in which a parameter took part in a forward pass."""

    @property
    def numbers(self) -> int:
        """How many numbers are formed for each example on the way."""

    def squared_norms(self, scratch: Scratch) -> Tensor:
        """‖gᵢ‖² of each example, where this is the only use of its parameter."""

    def add_to(self, total: Tensor, factors: Tensor) -> None:
        """Add Σ cᵢ gᵢ to a tensor of the parameter's shape, in one piece."""

    def rows(self, scratch: Scratch | None = None) -> Tensor:
        """All gᵢ, a row each, flattened; on scratch memory if there is any."""


LOST = 2.0**-62  # squares of float32 numbers below this lose bits, or are zero
LONG, _BLOCK = 1 << 10, 1 << 9  # added up one by one, many small squares are lost beside a large one: 2^-18 of a norm
_DOUBT = 1e-3  # of what terms could amount to: where they cancel below that, their sum is mostly rounding
_NOTHING = 2.0**-40


def squares(rows: Tensor) -> Tensor:
    """The squared l2 norm of each row, in float64, and no less: what float32 squares lose is added to the norm.

    The fused norm is several times faster than a product with itself.
    """
    flat = rows if rows.dim() == 2 else rows.reshape(rows.shape[0], -1)
    long = flat.shape[1] // _BLOCK * _BLOCK if flat.shape[1] > LONG else 0
    norms: Tensor = torch.linalg.vector_norm(flat[:, long:], dim=1).double()
    if long:
        blocks = torch.linalg.vector_norm(flat[:, :long].view(len(flat), -1, _BLOCK), dim=2).double()
        norms = torch.linalg.vector_norm(torch.cat([blocks, norms[:, None]], 1), dim=1)
    return norms.add_(math.sqrt(flat.shape[1]) * LOST).square_()


def inner_products(vectors: Tensor) -> Tensor:
    """The Gram matrix of each example's vectors, (examples, positions, features); long ones are added up in float64."""
    if vectors.shape[2] <= 2 * LONG:
        return vectors @ vectors.mT
    parts = ((part @ part.mT).double() for part in torch.split(vectors, LONG, 2))
    return torch.stack(list(parts)).sum(0)


def lengths(gram: Tensor, features: int) -> Tensor:
    """The norms of the vectors of which a Gram matrix holds the inner products, rounded up where squares are lost."""
    return gram.diagonal(dim1=1, dim2=2).double().sqrt().add_(math.sqrt(features) * LOST)


def from_grams(first: Tensor, second: Tensor, most: Tensor, alone: Callable[[int], Tensor]) -> Tensor:
    """Σ of the products of entries of two Gram matrices: the squared norm of each example's Σₜ uₜ ⊗ vₜ.

    Terms of different signs leave the rounding of the largest one: a gradient of norm 300 can come out as 0. So where
    less than a thousandth of `most`², of what they could amount to, is left, the gradient is formed, `alone`, and the
    norm is raised by what rounding may add to the example's share in a sum over all.
    """
    found = (first * second).flatten(1).sum(1).double()
    rounding = first.shape[0] * first.shape[1] * 2.0**-23
    doubtful = found < _DOUBT * most.square()
    if bool(doubtful.any()):
        found = torch.where(doubtful, most.square(), found)  # no norm is more
        for place in (doubtful & (most > _NOTHING)).nonzero().flatten().tolist():
            formed = squares(alone(place).reshape(1, -1)).sqrt_()[0]
            found[place] = (formed + rounding * most[place]).square_()
    return found


def positions(tensor: Tensor, last: int) -> Tensor:
    """(examples, all positions, features), with the last `last` dimensions as the features."""
    return tensor.reshape(tensor.shape[0], -1, *tensor.shape[tensor.dim() - last :]).flatten(2)


@dataclass(frozen=True, slots=True)
class Rows:
    """The gradients themselves, one a row: for what is small, or has no cheaper form."""

    values: Tensor
    shape: torch.Size

    @property
    def numbers(self) -> int:
        return self.shape.numel()

    def squared_norms(self, scratch: Scratch) -> Tensor:
        return squares(self.values)

    def add_to(self, total: Tensor, factors: Tensor) -> None:
        total.view(-1).addmv_(self.rows().t(), factors)

    def rows(self, scratch: Scratch | None = None) -> Tensor:
        return self.values.reshape(self.values.shape[0], -1)


class SharedGram:
    """The inner products of output gradients at all positions, for several matrices whose outputs were added up."""

    __slots__ = ("_found", "sharers")

    def __init__(self, sharers: int) -> None:
        self.sharers = sharers
        self._found: Tensor | None = None

    def of(self, outputs: Tensor) -> Tensor:
        """Those of `outputs`, which are the same at each call."""
        if self._found is None:
            self._found = inner_products(outputs)
        return self._found


class Product:
    """A matrix that multiplied positions: gᵢ = Σₜ output gradient ⊗ input, over the T positions of example i.

    The norm is a product of norms at one position (Goodfellow 2015), the inner product of two Gram matrices where
    those are small ("ghost", Li et al. 2022), or that of the gradient itself, which is then kept and used again.
    """

    __slots__ = ("_gram", "_places", "_rows", "_squared", "_turned", "inputs", "outputs", "shape")

    def __init__(self, inputs: Tensor, outputs: Tensor, gram: "SharedGram | None" = None) -> None:
        self.inputs, self.outputs = inputs, outputs  # (examples, positions, d) and (examples, positions, p)
        self._gram = gram  # of the outputs, if other matrices have the same
        self.shape = torch.Size((outputs.shape[2], inputs.shape[2]))  # of the matrix, as `nn.Linear` keeps it
        self._places = inputs.shape[1]
        self._rows: Tensor | None = None
        self._squared: Tensor | None = None
        self._turned = False  # whether rows hold the matrix the other way round

    @property
    def numbers(self) -> int:
        return self.shape.numel() if self._instantiates else 2 * self._places**2

    @property
    def _instantiates(self) -> bool:
        """Whether the gradients themselves are formed."""
        places, (p, d) = self._places, self.shape
        mine = d + (p if self._gram is None else p // self._gram.sharers)
        return places > 1 and 2 * places * places * mine >= GHOST * d * p

    def squared_norms(self, scratch: Scratch) -> Tensor:
        if self._squared is None:
            self._squared = self._squares(scratch)
        return self._squared

    def _squares(self, scratch: Scratch) -> Tensor:
        if self._places == 1:
            return squares(self.inputs) * squares(self.outputs)
        if self._instantiates:
            p, d = self.shape
            self._turned = d < min(p, NARROW)
            found = squares(self._formed(scratch))
            del self.inputs, self.outputs  # the gradients are all that is needed from now on
            return found
        first = inner_products(self.inputs)
        second = inner_products(self.outputs) if self._gram is None else self._gram.of(self.outputs)
        most = (lengths(first, self.shape[1]) * lengths(second, self.shape[0])).sum(1)
        return from_grams(first, second, most, lambda place: self.outputs[place].mT @ self.inputs[place])

    def add_to(self, total: Tensor, factors: Tensor) -> None:
        if self._rows is not None:
            if self._turned:
                total.t().add_((factors @ self._rows).view(self.shape[::-1]))
            else:
                total.view(-1).addmv_(self._rows.t(), factors)
            return
        outputs, inputs = self.outputs, self.inputs
        if self.shape[0] < self.shape[1]:
            outputs = outputs * factors[:, None, None]
        else:
            inputs = inputs * factors[:, None, None]
        if outputs.stride(0) < outputs.stride(1):  # examples stand side by side at each position: no copy, this way
            outputs, inputs = outputs.transpose(0, 1), inputs.transpose(0, 1)
        total.addmm_(outputs.flatten(0, 1).t(), inputs.flatten(0, 1))

    def rows(self, scratch: Scratch | None = None) -> Tensor:
        rows = self._formed(scratch)
        return rows.view(-1, *self.shape[::-1]).mT.flatten(1) if self._turned else rows

    def _formed(self, scratch: Scratch | None) -> Tensor:
        if self._rows is None:
            left, right = (self.inputs, self.outputs) if self._turned else (self.outputs, self.inputs)
            shape = (len(left), left.shape[2], right.shape[2])
            out = None if scratch is None else scratch.take(shape, left.device)
            self._rows = torch.bmm(left.mT, right, out=out).flatten(1)
        return self._rows

    def transposed(self) -> "Product":
        """The same for the matrix the other way round."""
        return Product(self.outputs, self.inputs)


class Lookup:
    """A table whose rows were looked up: gᵢ adds the output gradients of each row that example i asked for."""

    __slots__ = ("indices", "outputs", "size")

    def __init__(self, indices: Tensor, outputs: Tensor, size: int) -> None:
        self.indices, self.outputs = indices, outputs  # (examples, positions) and (examples, positions, d)
        self.size = size

    @property
    def numbers(self) -> int:
        return 2 * self.indices.shape[1] ** 2

    def squared_norms(self, scratch: Scratch) -> Tensor:
        if self.indices.shape[1] == 1:
            return squares(self.outputs)
        same = self.indices[:, :, None] == self.indices[:, None, :]
        grams = inner_products(self.outputs)
        each = lengths(grams, self.outputs.shape[2])
        most = ((same.double() @ each[:, :, None])[:, :, 0] * each).sum(1).sqrt_()
        return from_grams(grams, same, most, self._alone)

    def _alone(self, place: int) -> Tensor:
        """The rows that one example asked for, with their gradients; each of them once."""
        rows, places = torch.unique(self.indices[place], return_inverse=True)
        return self.outputs.new_zeros(len(rows), self.outputs.shape[2]).index_add_(0, places, self.outputs[place])

    def add_to(self, total: Tensor, factors: Tensor) -> None:
        scaled = (self.outputs * factors[:, None, None]).flatten(0, 1)
        total.index_add_(0, self.indices.flatten(), scaled)

    def rows(self, scratch: Scratch | None = None) -> Tensor:
        examples, _, width = self.outputs.shape
        places = self.indices + torch.arange(examples, device=self.indices.device)[:, None] * self.size
        table = self.outputs.new_zeros(examples * self.size, width)
        return table.index_add_(0, places.flatten(), self.outputs.flatten(0, 1)).view(examples, -1)


def together(uses: Sequence[Use], shape: torch.Size) -> Use:
    """All uses of one parameter as one: gradients add up before their norm is taken.

    Positions of products stand side by side; anything else is added up, example by example.
    """
    if len(uses) == 1:
        return uses[0]
    products = [use for use in uses if isinstance(use, Product)]
    if len(products) == len(uses):
        return Product(torch.cat([u.inputs for u in products], 1), torch.cat([u.outputs for u in products], 1))
    total = uses[0].rows().clone()
    for use in uses[1:]:
        total += use.rows()
    return Rows(total, shape)


def merged(use: Use, sizes: Tensor, shape: torch.Size) -> Use:
    """The use of units that hold several examples each: so many neighbours as `sizes` says, added up."""
    count, first = len(sizes), int(sizes[0])
    alike = bool((sizes == first).all())
    if alike and isinstance(use, Product):
        inputs, outputs = (t.reshape(count, -1, t.shape[2]) for t in (use.inputs, use.outputs))
        return Product(inputs, outputs)
    if alike and isinstance(use, Lookup):
        outputs = use.outputs.reshape(count, -1, use.outputs.shape[2])
        return Lookup(use.indices.reshape(count, -1), outputs, use.size)
    rows = use.rows()
    unit = torch.arange(count, device=rows.device).repeat_interleave(sizes.to(rows.device))
    return Rows(rows.new_zeros(count, rows.shape[1]).index_add_(0, unit, rows), shape)
