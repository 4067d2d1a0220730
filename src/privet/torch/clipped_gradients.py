"""Sums of clipped gradients of a network: one forward pass, one backward pass, one weighted product a layer."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch._utils import _unflatten_dense_tensors

from privet.clipping import Bounding, Clip, PerLayer
from privet.errors import InvalidParameter
from privet.torch.few_threads import few_threads, products
from privet.torch.gradient_differences import differences
from privet.torch.gradient_ways import PerExample, Recorded, Way, chosen, length, part
from privet.torch.proving import mixers, prove
from privet.torch.recording import NotRecorded, trainable
from privet.torch.remembering import Memory, check_memory
from privet.torch.scratch import Scratch
from privet.torch.softmax_regression import SoftmaxRegression
from privet.torch.turns import TRIAL, alone
from privet.torch.uncompiled import uncompiled
from privet.torch.uses import BELOW, LEAST, Rows, Use

_NOTHING = 2.0**-40  # a norm that is taken for none where parameters are counted
_NUMBERS = 11_000_000  # that a micro-batch may form for its examples, so that they stay near; measured


@dataclass(frozen=True, slots=True)
class ClippedSum:
    """Σ factor × gradient over a batch, a tensor a parameter. Private: no noise yet.

    `within` is how many more examples were within the clip than beyond: each adds 1, −1, or, left out, nothing.

    Examples
    --------
    >>> import torch
    >>> from privet.clipping import Clip
    >>> model = torch.nn.Linear(2, 1, bias=False)
    >>> engine = ClippedGradients(model, lambda model, x: model(x).squeeze(1))
    >>> found = engine.sum(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), Clip(clip=1.0))
    >>> [round(value, 3) for value in found.gradients[0][0].tolist()], found.within
    ([0.9, 1.2], 0)
    """

    gradients: tuple[Tensor, ...]
    within: int
    row: Tensor  # all gradients one after the other, in the same memory: noise is added to it in one go


class ClippedGradients:
    """The sums of clipped per-example gradients of a model: those of a loop over examples, at little more than the
    price of an ordinary step.

    Promise: the share of each example in the sum has l2 norm at most the clip, up to rounding in float32; one that is
    not finite contributes nothing; whatever is in a batch, nothing is raised. Before the first sum the model is proven,
    on made-up examples of the same shapes, to treat examples independently, and its gradients to be those of a loop.
    Neither the model nor its class, hooks or state dict are changed.
    Theorem: docs/networks.md, "How gradients are clipped".

    Parameters
    ----------
    model : any module; its parameters that require a gradient are the ones that are trained
    per_example : of the model and a batch, the losses, one an example
    micro_batch : how many examples are looked at at once; chosen to fit the cache if left out. It changes no result

    Examples
    --------
    >>> import torch
    >>> from privet.clipping import Clip
    >>> loss = torch.nn.CrossEntropyLoss(reduction="none")
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    >>> engine = ClippedGradients(model, lambda model, batch: loss(model(batch[0]), batch[1]))
    >>> total = engine.sum((torch.randn(16, 4), torch.randint(3, (16,))), Clip(clip=0.1))
    >>> [tuple(gradient.shape) for gradient in total.gradients], engine.way
    ([(8, 4), (8,), (3, 8), (3,)], 'book-keeping')
    """

    def __init__(self, model: nn.Module, per_example: PerExample, *, micro_batch: int | None = None) -> None:
        self.model, self.per_example = model, per_example
        named = trainable(model)
        self.names: tuple[str, ...] = tuple(named)
        self.parameters: tuple[nn.Parameter, ...] = tuple(named.values())
        self._micro_batch = micro_batch
        self._way: Way | None = None
        self._numbers = 0  # that are formed for one example, as far as is known
        self.way = ""
        self._scratch = Scratch()
        self._scales: list[Tensor] | None = None
        self._anchor: list[Tensor] | None = None
        self._sums = 0
        self._watched: tuple[tuple[str, nn.Module], ...] = ()
        self._modes: list[bool] = []

    def prove(self, batch: Any) -> None:
        """Check the model on made-up examples of the shapes and types of `batch`, whose values are not read."""
        with TRIAL, uncompiled(self.model):
            self._way, self.way = prove(self.model, self.per_example, batch)
        if isinstance(self._way, Recorded):
            self._way.scratch = self._scratch
        self._watched = tuple(mixers(self.model))
        self._modes = [module.training for module in self.model.modules()]

    @torch.no_grad()
    def sum(
        self,
        batch: Any,
        rule: Bounding,
        *,
        sizes: Tensor | None = None,
        scales: list[Tensor] | None = None,
        anchor: list[Tensor] | None = None,
    ) -> ClippedSum:
        """The sum over a batch; with `sizes`, so many neighbouring examples are one unit, and their mean is clipped.

        With `scales`, public tensors of the parameters' shapes, gradients are multiplied by those before the clip, and
        it is the scaled ones that are summed. With `anchor`, other weights, gradients at those are subtracted before.
        """
        self._scales, self._anchor = scales, anchor
        if self._way is None:
            self.prove(batch)
        modules = tuple(self.model.modules())
        self._check_unchanged(modules)
        if self._modes != [module.training for module in modules]:
            self.prove(batch)  # another model, as far as anybody knows
        row, totals = one_row(self.parameters)
        plain = sizes is None and scales is None and anchor is None
        if plain and (count := self._add_closed(batch, rule, totals)) is not None:
            return ClippedSum(totals, count, row)
        self._sums += 1
        memory = Memory(self.model, copy=self._sums & (self._sums - 1) == 0)  # now and then: what `.data` hides
        with alone(self.model), uncompiled(self.model), few_threads(products(modules, length(batch))):
            within = sum(self._add(*examples, rule, totals) for examples in self._micro_batches(batch, sizes))
        check_memory(memory)
        return ClippedSum(totals, within, row)

    def _add_closed(self, batch: Any, rule: Bounding, totals: Sequence[Tensor]) -> int | None:
        """The whole batch by the closed form, which asks neither model nor loss; None if there is none for it."""
        if not isinstance(self._way, SoftmaxRegression) or not isinstance(rule, Clip):
            return None
        try:
            return self._way.add_clipped(batch, rule.clip, totals)
        except Exception:  # noqa: BLE001  # some example has no such label, or shape: it is found the long way
            return None

    def _check_unchanged(self, modules: Sequence[nn.Module]) -> None:
        held = [p for module in modules for p in module._parameters.values() if p is not None and p.requires_grad]
        if list(dict.fromkeys(map(id, held))) != list(map(id, self.parameters)):
            now = trainable(self.model)
            names = sorted(set(now) ^ set(self.names)) or ["some parameter"]
            raise InvalidParameter(f"""Expected the trainable parameters that the model had at set-up, got others
                ({", ".join(names[:3])}): their gradients would be neither clipped nor covered by the noise. Set
                requires_grad and add layers before the run is made.""")
        for name, module in self._watched:
            if module.training:
                raise InvalidParameter(f"""Expected {name!r} to stay in evaluation mode, as at set-up, got training
                    mode: it would normalise by statistics of the batch, and mix examples. Call .eval() on it after
                    model.train(), or use make_compatible(model).""")

    def _micro_batches(self, batch: Any, sizes: Tensor | None) -> Iterator[tuple[Any, Tensor | None]]:
        count = length(batch) if sizes is None else len(sizes)
        if not count:
            return
        if self._micro_batch:
            pieces = -(-count // self._micro_batch)
        else:
            pieces = min(max(1, round(count * self._numbers / _NUMBERS)), -(-count // 8))
        if pieces == 1:
            yield batch, sizes
            return
        ends = [round(count * piece / pieces) for piece in range(pieces + 1)]
        for start, stop in pairwise(ends):
            if sizes is None:
                yield part(batch, start, stop), None
            else:
                first, last = int(sizes[:start].sum()), int(sizes[:stop].sum())
                yield part(batch, first, last), sizes[start:stop]

    def _add(self, batch: Any, sizes: Tensor | None, rule: Bounding, totals: Sequence[Tensor]) -> int:
        """Add the clipped gradients of a micro-batch to the totals; units within the clip, less those beyond."""
        try:
            if self._anchor is None:
                uses = self._uses(batch, sizes)
            else:
                uses = differences(lambda: self._uses(batch, sizes), self.parameters, self._anchor)
        except Exception as error:  # the model runs on made-up examples: it is these it cannot read
            if isinstance(error, MemoryError | torch.OutOfMemoryError) and length(batch) <= 1:
                raise  # a machine too small for one example is no example's own doing
            return self._add_halves(batch, sizes, rule, totals)
        if self._scales is not None:
            uses = [_scaled(use, scale, self._scratch) for use, scale in zip(uses, self._scales, strict=True)]
        used = [use.squared_norms(self._scratch) for use in uses if use is not None]
        squared = torch.stack(used or [torch.zeros(1, dtype=torch.float64)])
        norms = squared.sum(0).sqrt_()
        if not math.isfinite(float(norms.sum())):
            good = norms.isfinite().nonzero().squeeze(1)
            if not len(good):
                return 0
            keep = good if sizes is None else _members(sizes, good)
            return self._add(chosen(batch, keep), None if sizes is None else sizes[good.cpu()], rule, totals)
        factors = _factors(norms, squared, rule)
        self._numbers = sum(use.numbers for use in uses if use is not None)
        mine = iter(factors if len(factors) > 1 else factors.expand(len(used), -1))
        for place, use in enumerate(uses):
            if use is not None:
                use.add_to(totals[place], next(mine))
                uses[place] = None  # what it holds is free again
        self._scratch.release()
        return 2 * int((norms <= rule.clip).sum()) - len(norms)

    def _uses(self, batch: Any, sizes: Tensor | None) -> list[Use | None]:
        assert self._way is not None  # noqa: S101
        try:
            return self._way.uses(batch, sizes)
        except NotRecorded:  # this batch takes another path through the model than the made-up ones did
            from privet.torch.gradient_ways import Looped

            return Looped(self.model, self.per_example).uses(batch, sizes)

    def _add_halves(self, batch: Any, sizes: Tensor | None, rule: Bounding, totals: Sequence[Tensor]) -> int:
        """The same in two halves, down to the example that cannot be read, which contributes nothing."""
        count = length(batch) if sizes is None else len(sizes)
        if count <= 1:
            return 0
        half, within = count // 2, 0
        for start, stop in ((0, half), (half, count)):
            if sizes is None:
                within += self._add(part(batch, start, stop), None, rule, totals)
            else:
                first, last = int(sizes[:start].sum()), int(sizes[:stop].sum())
                within += self._add(part(batch, first, last), sizes[start:stop], rule, totals)
        return within


def one_row(parameters: Sequence[Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
    """A row of zeros, and the same memory in the shapes of parameters, one after the other."""
    size = sum(parameter.numel() for parameter in parameters)
    row = torch.zeros(size, device=parameters[0].device if parameters else None)
    shaped = _unflatten_dense_tensors(row, parameters) if parameters else ()  # type: ignore[no-untyped-call]
    return row, shaped


def _factors(norms: Tensor, squared: Tensor, rule: Bounding) -> Tensor:
    """What to multiply each example's gradient by: a row for all parameters, or one for each that was used.

    How many parameters share a clip is counted for each example by itself: what one uses must not change what others
    add. A gradient that does not count is left out.
    """
    if isinstance(rule, PerLayer):
        used = squared > _NOTHING**2
        most = (rule.clip / (squared * used.sum(0)).sqrt_()).clamp_(max=1.0)
        return _rounded(torch.where(used, most, 0.0))
    most = (rule.clip / norms).clamp_(max=1.0)
    chosen_by_rule = rule.factor(norms.cpu().numpy())
    if chosen_by_rule is not None:
        most = torch.minimum(most, torch.as_tensor(chosen_by_rule, dtype=most.dtype, device=most.device))
    return _rounded(most)[None]


def _rounded(factors: Tensor) -> Tensor:
    """As float32, and no more: what is too small for it to hold well is nothing."""
    return torch.threshold_(factors.mul_(BELOW), LEAST, 0.0).float()


def _scaled(use: Use | None, scale: Tensor, scratch: Scratch) -> Use | None:
    return None if use is None else Rows(use.rows(scratch) * scale.reshape(-1), scale.shape)


def _members(sizes: Tensor, units: Tensor) -> Tensor:
    """The examples of these units."""
    owner = torch.arange(len(sizes)).repeat_interleave(sizes.cpu())
    return torch.isin(owner, units.cpu()).nonzero().squeeze(1)


def clipped_sum(
    model: nn.Module,
    per_example: PerExample,
    batch: Any,
    *,
    clip: float,
    micro_batch: int | None = None,
) -> dict[str, Tensor]:
    """The sum of a batch's gradients, each shortened to norm `clip`, by name of the parameter; **without noise**.

    For those who write their own loop; `ClippedGradients` keeps what this finds out about the model at every call.

    Examples
    --------
    >>> import torch
    >>> from torch.nn.functional import mse_loss
    >>> model, x = torch.nn.Linear(3, 1), torch.randn(8, 3)
    >>> losses = lambda model, batch: mse_loss(model(batch[0]), batch[1], reduction="none").mean(1)
    >>> sorted(clipped_sum(model, losses, (x, torch.zeros(8, 1)), clip=1.0))
    ['bias', 'weight']
    """
    engine = ClippedGradients(model, per_example, micro_batch=micro_batch)
    return dict(zip(engine.names, engine.sum(batch, Clip(clip=clip)).gradients, strict=True))
