"""Recurrent layers: LSTM with a backward pass of its own, GRU and plain RNN as their equations say."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # PyTorch's own name for it

from privet.torch.few_threads import few_threads
from privet.torch.product_rules import linear
from privet.torch.recording import NotRecorded, Recording
from privet.torch.uses import Product, Rows, SharedGram, Use

Layer = Callable[[Recording, Tensor, tuple[Tensor, ...], Sequence[Tensor]], tuple[Tensor, tuple[Tensor, ...]]]


def lstm(recording: Recording, input: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    """`torch.lstm`: output, last hidden states, last cells."""
    return _stacked(recording, _lstm_layer, input, *rest)


def gru(recording: Recording, input: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    """`torch.gru`: output, last hidden states."""
    return _stacked(recording, _cells(_gru_cell), input, *rest)


def rnn_tanh(recording: Recording, input: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    """`torch.rnn_tanh`: output, last hidden states."""
    return _stacked(recording, _cells(lambda x, h, _: torch.tanh(x + h)), input, *rest)


def rnn_relu(recording: Recording, input: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    """`torch.rnn_relu`: output, last hidden states."""
    return _stacked(recording, _cells(lambda x, h, _: torch.relu(x + h)), input, *rest)


def _stacked(
    recording: Recording,
    layer: Layer,
    input: Tensor,
    states: Any,
    weights: Any,
    has_biases: bool = True,
    num_layers: int = 1,
    dropout: float = 0.0,
    training: bool = False,
    bidirectional: bool = False,
    batch_first: bool = False,
) -> tuple[Tensor, ...]:
    """All layers and directions; sequences are kept (positions, examples, features) inside."""
    if not isinstance(states, Tensor | tuple | list) or isinstance(weights, bool):
        raise NotRecorded  # packed sequences
    first = tuple(states) if isinstance(states, tuple | list) else (states,)
    directions = 2 if bidirectional else 1
    each = len(weights) // (num_layers * directions)
    if each not in (2, 4):
        raise NotRecorded  # projections
    x, ends = input.transpose(0, 1) if batch_first else input, []
    for depth in range(num_layers):
        outputs = []
        for direction in range(directions):
            place = depth * directions + direction
            mine = weights[place * each : (place + 1) * each]
            sequence = x.flip(0) if direction else x
            found, last = layer(recording, sequence, tuple(state[place] for state in first), mine)
            outputs.append(found.flip(0) if direction else found)
            ends.append(last)
        x = torch.cat(outputs, 2) if bidirectional else outputs[0]
        if dropout and training and depth < num_layers - 1:
            x = F.dropout(x, dropout)
    x = x.transpose(0, 1) if batch_first else x
    return x, *(torch.stack(state) for state in zip(*ends, strict=True))


def _projected(
    recording: Recording, x: Tensor, weights: Sequence[Tensor], hidden: Callable[[], Tensor] | None
) -> Tensor:
    """x W_ihᵀ + b for all positions at once. With `hidden`, its gradient is W_hh's and all biases' too."""
    numbers = [recording.number(weight) for weight in weights]
    x = x.contiguous()
    inputs = x.detach()
    biases = [recording.plain(bias) for bias in weights[2:]]
    shift = None if not biases else biases[0] + biases[1] if hidden else biases[0]
    output = F.linear(x, recording.plain(weights[0]), shift)

    def uses(gradient: Tensor) -> Iterator[tuple[int, Use]]:
        states = [inputs, *([hidden()] if hidden else [])]
        gram = SharedGram(sum(number is not None for number in numbers[: len(states)]))
        outputs = gradient.transpose(0, 1)
        for number, state in zip(numbers, states, strict=False):
            if number is not None:
                yield number, Product(state.float().transpose(0, 1), outputs, gram)
        total = gradient.sum(0)
        for number in numbers[2:] if hidden else numbers[2:3]:
            if number is not None:
                yield number, Rows(total, total.shape[1:])

    return recording.tap(output, uses, second=True)


def _lstm_layer(
    recording: Recording, x: Tensor, states: tuple[Tensor, ...], weights: Sequence[Tensor]
) -> tuple[Tensor, tuple[Tensor, ...]]:
    kept: list[Tensor] = []
    start, cell = (_at_least(state, x) for state in states)
    gates = _projected(recording, x, weights, lambda: torch.cat([start.detach()[None], kept[0][:-1]]))
    hidden, last = _Lstm.apply(gates, start, cell, recording.plain(weights[1]))  # type: ignore[no-untyped-call]
    kept.append(hidden.detach())
    return hidden, (hidden[-1], last)


def _at_least(state: Tensor, like: Tensor) -> Tensor:
    return state.to(like.dtype)


class _Lstm(torch.autograd.Function):
    """The recurrence of an LSTM over positions, from the gates' inputs; gradients come back to those.

    Gates are input, forget, candidate, output. What does not depend on later positions is computed for all at once.
    Inputs of gates, gates, and gradients of gates are one after the other in the same memory: fresh pages cost more
    than the arithmetic on them.
    """

    @staticmethod
    def forward(ctx: Any, gates: Tensor, hidden: Tensor, cell: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        positions, examples, width = gates.shape
        gates, turned = gates.detach(), weight.t()
        cells = gates.new_empty(positions + 1, examples, width // 4)
        tops, outputs = torch.empty_like(cells[1:]), torch.empty_like(cells[1:])
        cells[0], state = cell, hidden
        inside, forget, candidate, out = (gate.unbind(0) for gate in gates.chunk(4, 2))
        both, at = gates[:, :, : width // 2].unbind(0), cells.unbind(0)
        steps = zip(*map(torch.unbind, (gates, tops, outputs)), strict=True)
        with few_threads(examples * weight.numel()):
            for t, (now, top, output) in enumerate(steps):
                now.addmm_(state, turned)
                both[t].sigmoid_()
                candidate[t].tanh_()
                out[t].sigmoid_()
                torch.mul(forget[t], at[t], out=at[t + 1]).addcmul_(inside[t], candidate[t])
                torch.tanh(at[t + 1], out=top)
                state = torch.mul(out[t], top, out=output)
        ctx.kept = gates, cells, tops, weight
        return outputs, cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        if ctx.kept is None:
            raise NotRecorded  # a second way back: what it needs is gone
        upstream, last = gradients
        (gates, cells, tops, weight), ctx.kept = ctx.kept, None
        inside, forget, candidate, out = gates.chunk(4, 2)
        # Derivatives: of a sigmoid s, s (1 − s); of a tanh v, 1 − v². A gate's gradient is the cell's or, for the
        # output gate, the state's, times a slope that is known beforehand, and takes the gate's place.
        to_top = torch.addcmul(out, out * tops, tops, value=-1)
        torch.addcmul(tops, out, tops, value=-1, out=tops)
        out *= tops
        kept, both = forget.clone(), inside * candidate
        torch.addcmul(inside, both, candidate, value=-1, out=candidate)
        torch.addcmul(both, inside, both, value=-1, out=inside)
        forget.addcmul_(kept, kept, value=-1).mul_(cells[:-1])
        to_state, to_cell = torch.zeros_like(last), last.clone()
        by_cell = gates.view(*gates.shape[:2], 4, -1)[:, :, :3]
        steps = zip(*map(torch.unbind, (upstream, to_top, by_cell, out, kept, gates)), strict=True)
        each = to_cell[:, None]
        with few_threads(len(last) * weight.numel()):
            for back, top, three, one, forgotten, now in reversed(list(steps)):
                to_state += back
                to_cell.addcmul_(to_state, top)
                three *= each  # from here on these are the gradients of the gates
                one *= to_state
                to_cell *= forgotten
                torch.mm(now, weight, out=to_state)
        return gates, to_state, to_cell, None


def _cells(cell: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Layer:
    """A layer whose next state follows from its projected input, its projected state and its state."""

    def layer(
        recording: Recording, x: Tensor, states: tuple[Tensor, ...], weights: Sequence[Tensor]
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        hidden, found = _at_least(states[0], x), []
        bias = weights[3] if len(weights) == 4 else None
        for now in _projected(recording, x, weights, None).unbind(0):
            hidden = cell(now, linear(recording, hidden, weights[1], bias), hidden)
            found.append(hidden)
        return torch.stack(found), (hidden,)

    return layer


def _gru_cell(inputs: Tensor, states: Tensor, hidden: Tensor) -> Tensor:
    reset, update, new = inputs.chunk(3, 1)
    from_reset, from_update, from_new = states.chunk(3, 1)
    candidate = torch.tanh(new + torch.sigmoid(reset + from_reset) * from_new)
    return torch.lerp(candidate, hidden, torch.sigmoid(update + from_update))
