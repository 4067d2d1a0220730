"""Watch a forward pass: which operations used which trainable parameters, on what, and what came back to them.

A mode of PyTorch sees every function that is called on tensors, inside modules or not. Where a trainable parameter
meets examples, the function runs on a copy cut off from autograd, and its input is kept; so no path of the graph leads
to the parameter, and ordinary gradients are never formed. What is computed from parameters alone (a transposed weight,
a slice, a normalised one) becomes a parameter itself, and its gradients are carried back at the end.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # PyTorch's own name for it
from torch.overrides import TorchFunctionMode

from privet.torch.scratch import Scratch
from privet.torch.uses import Rows, Use

Found = Iterable[tuple[int, Use]]
_GROWING = {torch.Tensor.expand, torch.Tensor.repeat, torch.broadcast_to, torch.Tensor.broadcast_to}
_TURNING = {torch.Tensor.t, torch.t, torch.Tensor.transpose, torch.transpose, torch.Tensor.permute}
_DROPPING = {F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout}
_RATES: dict[Any, tuple[int, str]] = {  # where functions that do more take their rate of dropout
    F.scaled_dot_product_attention: (4, "dropout_p"),
    F.multi_head_attention_forward: (10, "dropout_p"),
    **dict.fromkeys((torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu), (5, "dropout")),
}


class NotRecorded(Exception):
    """This forward pass cannot be recorded; the gradients have to be taken in another way."""


class Call(NamedTuple):
    """One call that a trainable parameter took part in."""

    function: Any
    numbers: tuple[int, ...]
    examples: bool  # whether it met examples, or nothing that depends on them
    shapes: tuple[torch.Size, ...]  # of the other tensors, where it met no examples: they must not depend on how many


class Tap:
    """An output of a recorded call. When its gradient comes back, still near, what can be made of it is made."""

    __slots__ = ("_once", "_scratch", "_uses", "found")

    def __init__(self, uses: Callable[[Tensor], Found], once: frozenset[int], scratch: Scratch | None) -> None:
        self._uses: Callable[[Tensor], Found] | None = uses
        self._once, self._scratch = once, scratch
        self.found: list[tuple[int, Use]] = []

    def __call__(self, gradient: Tensor) -> Tensor:
        gradient = gradient.contiguous()  # also for what comes before: it would be copied once more there
        if self._uses is not None:
            self.found = list(self._uses(gradient.float()))
            self._uses = None  # and what it holds
            if self._scratch is not None:
                for number, use in self.found:
                    if number in self._once and not isinstance(use, Rows):
                        use.squared_norms(self._scratch)  # which it keeps, and what it needs no more is freed
        return gradient


@dataclass(slots=True)
class Sources:
    """Trainable parameters, then what is computed from them alone, in the order in which it was computed."""

    tensors: list[Tensor]
    roots: list[tuple[int, ...]] = field(default_factory=list)  # of what is computed: the parameters it comes from
    turned: dict[int, int] = field(default_factory=dict)  # of a matrix turned round: which
    numbers: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.numbers = {id(tensor): number for number, tensor in enumerate(self.tensors)}
        self.roots = [(number,) for number in range(len(self.tensors))]

    def add(self, tensor: Tensor, parents: Sequence[int]) -> None:
        """Remember a tensor that was computed from these."""
        if id(tensor) not in self.numbers:
            self.numbers[id(tensor)] = len(self.tensors)
            self.tensors.append(tensor)
            self.roots.append(tuple(sorted({root for parent in parents for root in self.roots[parent]})))


class Recording(TorchFunctionMode):
    """A forward pass of `size` examples, watched. `script` says which calls meet examples; without one it is written.

    A tensor meets examples if its first dimension has as many entries as there are examples. That could be chance (as
    many positions as examples), so a script is written at two sizes, and only what agrees at both is believed.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        size: int,
        *,
        script: Sequence[Call] | None = None,
        still: bool = False,
        scratch: Scratch | None = None,
    ) -> None:
        super().__init__()
        from privet.torch.layer_rules import FLAT, GROWN, NEAR, RULES, SECOND  # the rules record through this class

        self._rules: Mapping[Any, Callable[..., Any]] = RULES
        self._grown, self._second, self._flat = GROWN, SECOND, FLAT
        self.size = size
        self.sources = Sources(list(parameters))
        self.taps: list[Tap] = []
        self.calls: list[Call] = []
        self._script, self._still = script, still
        self._scratch, self._once = scratch, frozenset[int]()
        if script is not None and scratch is not None:
            seen = Counter(number for call in script for number in call.numbers)
            near = {number for call in script if call.function in NEAR for number in call.numbers}
            self._once = frozenset(number for number in near if seen[number] == 1)
        self._start = torch.zeros((), requires_grad=True)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._still:
            if func in _DROPPING and args:
                return args[0]
            args, kwargs = _without_dropout(func, args, kwargs)
        touched = self._touched(args, kwargs)
        if not touched:
            return func(*args, **kwargs)
        shapes = tuple(value.shape for value in _tensors(args, kwargs) if id(value) not in self.sources.numbers)
        if not self._meets_examples(func, args, shapes):
            result = func(*args, **kwargs)
            if not self._is_new(result):
                return result  # a size, a type, a detached copy: nothing to learn from
            if self._met(Call(func, touched, False, shapes)):
                raise NotRecorded
            return self._computed(func, touched, result)
        if not self._met(Call(func, touched, True, ())):
            return self._computed(func, touched, func(*args, **kwargs))
        rule = self._rules.get(func)
        if rule is None and func in _GROWING:
            rule = self._grown
        if rule is not None:
            return rule(self, *args, **kwargs)
        return self._rules[None](self, func, touched, args, kwargs)

    # -- what a rule needs -------------------------------------------------------------------------------------------

    def number(self, tensor: Tensor | None) -> int | None:
        """Which source a tensor is; None if it is none."""
        return None if tensor is None else self.sources.numbers.get(id(tensor))

    def plain(self, tensor: Any) -> Any:
        """The tensor, cut off from autograd if it is a source."""
        return tensor.detach() if isinstance(tensor, Tensor) and id(tensor) in self.sources.numbers else tensor

    def positions(self, tensor: Tensor) -> Tensor:
        """(examples, all positions, features), also if positions of all examples stood one below the other."""
        return tensor.reshape(self.size, -1, tensor.shape[-1])

    def tap(
        self, output: Tensor, uses: Callable[[Tensor], Found], *, flat: bool = False, second: bool = False
    ) -> Tensor:
        """Let `uses` be told the gradient of `output`, a fresh tensor of this call: a row an example, or several.

        With `second`, examples stand in the second dimension.
        """
        count = output.shape[second] if output.dim() > second else 0
        if not output.dim() or (count % self.size if flat else count != self.size):
            raise NotRecorded
        if output._is_view():  # so that it may be changed in place, and the tap still hears of it as it was
            output = torch.ops.aten._unsafe_view(output, output.shape)
        if not output.requires_grad:
            output = _Start.apply(output, self._start)  # type: ignore[no-untyped-call]
        tap = Tap(uses, self._once, self._scratch)
        output.register_hook(tap)  # type: ignore[no-untyped-call]  # before anything changes the output in place
        self.taps.append(tap)
        return output

    def found(self) -> Iterator[tuple[int, Use]]:
        """Every use, after gradients have come back; what was kept for them is given up."""
        taps, self.taps = self.taps, []
        for tap in taps:
            yield from tap.found

    # -- what meets what ---------------------------------------------------------------------------------------------

    def _touched(self, args: Any, kwargs: Any) -> tuple[int, ...]:
        known = self.sources.numbers
        found = [known[id(value)] for value in _tensors(args, kwargs) if id(value) in known]
        return tuple(found)

    def _meets_examples(self, func: Any, args: Any, shapes: tuple[torch.Size, ...]) -> bool:
        if func in _GROWING:
            sizes = args[1] if len(args) == 2 and not isinstance(args[1], int) else args[1:]
            first = args[0].shape[0] if args[0].dim() == len(sizes) else 1
            return bool(len(sizes)) and sizes[0] == self.size and first == 1
        if func in self._second:  # (positions, examples, features)
            return len(shapes[0]) == 3 and shapes[0][self._second[func](args)] == self.size
        if func in self._flat:  # all positions of all examples, one below the other
            return any(len(shape) == 2 and shape[0] % self.size == 0 for shape in shapes) or any(
                len(shape) > 0 and shape[0] == self.size for shape in shapes
            )
        return any(len(shape) > 0 and shape[0] == self.size for shape in shapes)

    def _met(self, call: Call) -> bool:
        """Whether this call meets examples: as the script says, which must know it; else as it looks."""
        place = len(self.calls)
        self.calls.append(call)
        if self._script is None:
            return call.examples
        if place >= len(self._script) or self._script[place][:2] != call[:2]:
            raise NotRecorded
        return self._script[place].examples

    def _computed(self, func: Any, touched: tuple[int, ...], result: Any) -> Any:
        """What came out of parameters alone: a source from now on."""
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, Tensor) and tensor.requires_grad:
                turns = len(touched) == 1 and tensor.dim() == 2 and (func in _TURNING or _is_turn(func))
                self.sources.add(tensor, touched)
                whole = self.sources.tensors[touched[0]]
                if turns and tensor.shape == whole.shape[::-1] and tensor.stride() == whole.stride()[::-1]:
                    self.sources.turned[self.sources.numbers[id(tensor)]] = touched[0]
        return result

    def _is_new(self, result: Any) -> bool:
        several = result if isinstance(result, tuple | list) else (result,)
        known = self.sources.numbers
        return any(isinstance(t, Tensor) and t.requires_grad and id(t) not in known for t in several)


class _Start(torch.autograd.Function):
    """Where gradients start to be wanted: the first recorded output, itself, may be changed in place afterwards."""

    @staticmethod
    def forward(ctx: Any, output: Tensor, start: Tensor) -> Tensor:
        ctx.mark_dirty(output)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, None


def _without_dropout(func: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    if func not in _RATES:
        return args, kwargs
    place, name = _RATES[func]
    if name in kwargs:
        return args, {**kwargs, name: 0.0}
    return (*args[:place], 0.0, *args[place + 1 :]) if len(args) > place else args, kwargs


def _is_turn(func: Any) -> bool:
    owner = getattr(func, "__self__", None)
    return owner in (torch.Tensor.T, torch.Tensor.mT)


def _tensors(args: Any, kwargs: Any) -> Iterator[Tensor]:
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from (inner for inner in value if isinstance(inner, Tensor))


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that are trained, by name; one that is shared stands under its first name."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
