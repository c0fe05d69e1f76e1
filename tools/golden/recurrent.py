"""Recurrent layers and cells, attention and Transformers.

All inputs, states and parameters are computed by wave(), here and in the specs. A case has the output, and, for the
loss that weighs the outputs with a wave, the gradient of each input and parameter, weighed with another wave:
one number for each tensor. All values are float64.
"""

import torch
from torch import nn
from torch.nn.utils import rnn

from nn import lua


def wave(shape, seed):
  """Returns a tensor of 0.7 cos(1.3 k + seed), k = 0, 1..."""
  n = 1
  for size in shape:
    n *= size
  return (0.7 * torch.cos(1.3 * torch.arange(n, dtype=torch.float64) + seed)).reshape(tuple(shape))


def set_parameters(module):
  """Gives every parameter its wave: seeds 1, 2, 3... in their order."""
  for seed, p in enumerate(module.parameters()):
    p.data.copy_(wave(p.shape, seed + 1))


def weigh(tensors):
  """Returns the sum of all tensors, each multiplied by its wave."""
  return sum((t * wave(t.shape, 10 + i)).sum() for i, t in enumerate(tensors))


def numbers(tensors):
  """Returns the gradient of each tensor, weighed by a wave; 0 where there is none."""
  return [0.0 if t.grad is None else (t.grad * wave(t.shape, 3)).sum().item() for t in tensors]


def finish(case, module, inputs, outputs):
  weigh(outputs).backward()
  case.update(outputs=outputs, inputs=numbers(inputs), parameters=numbers(module.parameters()))
  return case


def layer_cases():
  """Layers: name, options, shape of the input, lengths when it is packed, whether a state is given."""
  def case(name, shape, state=False, lengths=None, **options):
    module = getattr(nn, name)(3, 2, **options) if "proj_size" not in options else getattr(nn, name)(3, 4, **options)
    set_parameters(module)
    x = wave(shape, 0).requires_grad_()
    result = {"name": name, "options": options, "shape": list(shape), "state": state, "lengths": lengths,
              "hidden": module.hidden_size}
    layers = module.num_layers * (2 if module.bidirectional else 1)
    size = getattr(module, "proj_size", 0) or module.hidden_size
    batch = shape[0] if options.get("batch_first") else shape[1]
    sizes = [(layers, batch, size), (layers, batch, module.hidden_size)][:2 if name == "LSTM" else 1]
    if len(shape) == 2:
      sizes = [(s[0], s[2]) for s in sizes]
    hx = [wave(s, 5 + i).requires_grad_() for i, s in enumerate(sizes)] if state else []
    given = (tuple(hx) if name == "LSTM" else hx[0]) if state else None
    if lengths:
      packed = rnn.pack_padded_sequence(x, lengths, batch_first=options.get("batch_first", False),
                                        enforce_sorted=False)
      out, last = module(packed, given)
      out = rnn.pad_packed_sequence(out, batch_first=options.get("batch_first", False))[0]
    else:
      out, last = module(x, given)
    outputs = [out] + (list(last) if isinstance(last, tuple) else [last])
    return finish(result, module, [x] + hx, outputs)

  for name in ["RNN", "LSTM", "GRU"]:
    yield case(name, (4, 2, 3))
    yield case(name, (4, 2, 3), state=True)
    yield case(name, (1, 2, 3), state=True, bias=False)
    yield case(name, (2, 4, 3), state=True, batch_first=True, num_layers=2)
    yield case(name, (4, 2, 3), state=True, bidirectional=True)
    yield case(name, (3, 2, 3), state=True, bidirectional=True, num_layers=3, bias=False)
    yield case(name, (4, 3), state=True)
    yield case(name, (4, 3), batch_first=True, bidirectional=True)
    yield case(name, (4, 3, 3), lengths=[4, 2, 1])
    yield case(name, (4, 3, 3), state=True, lengths=[2, 4, 2], num_layers=2)
    yield case(name, (3, 5, 3), state=True, lengths=[2, 5, 3], bidirectional=True, num_layers=2, batch_first=True)
  yield case("RNN", (4, 2, 3), state=True, nonlinearity="relu")
  yield case("RNN", (4, 2, 3), state=True, nonlinearity="relu", num_layers=2, bidirectional=True)
  yield case("LSTM", (4, 2, 3), state=True, proj_size=2)
  yield case("LSTM", (3, 4, 3), lengths=[4, 1, 3], proj_size=3, num_layers=2, bidirectional=True, batch_first=True)
  yield case("LSTM", (4, 3), state=True, proj_size=1, bias=False)


def cell_cases():
  """Cells: name, options, shape of the input, whether a state is given."""
  def case(name, shape, state=True, **options):
    module = getattr(nn, name)(3, 2, **options)
    set_parameters(module)
    x = wave(shape, 0).requires_grad_()
    states = [wave(shape[:-1] + (2,), 5 + i).requires_grad_() for i in range(2 if name == "LSTMCell" else 1)]
    hx = (tuple(states) if name == "LSTMCell" else states[0]) if state else None
    out = module(x, hx)
    result = {"name": name, "options": options, "shape": list(shape), "state": state}
    return finish(result, module, [x] + (states if state else []), list(out) if isinstance(out, tuple) else [out])

  for name in ["RNNCell", "LSTMCell", "GRUCell"]:
    yield case(name, (4, 3))
    yield case(name, (4, 3), state=False)
    yield case(name, (3,), bias=False)
    yield case(name, (3,), state=False)
  yield case("RNNCell", (4, 3), nonlinearity="relu")


def attention_cases():
  """Attention: options, the shapes of query, key and value, masks, options of the call."""
  def case(shapes, masks=None, call=None, size=4, heads=2, **options):
    module = nn.MultiheadAttention(size, heads, **options)
    set_parameters(module)
    inputs = [wave(shape, i).requires_grad_() for i, shape in enumerate(shapes)]
    given = inputs * 3 if len(inputs) == 1 else inputs
    masks, call = masks or {}, call or {}
    out, weights = module(*given, **call, **{k: true_mask(m) for k, m in masks.items()})
    result = {"size": size, "heads": heads, "options": options, "shapes": [list(s) for s in shapes], "masks": masks,
              "call": call}
    return finish(result, module, inputs, [out] + ([weights] if weights is not None else []))

  three = [(3, 2, 4), (5, 2, 4), (5, 2, 4)]
  padding = torch.tensor([[0, 0, 0, 1, 1], [0, 1, 0, 0, 1]])
  yield case([(3, 2, 4)])
  yield case(three)
  yield case(three, call={"need_weights": False})
  yield case(three, call={"average_attn_weights": False}, bias=False)
  yield case([(2, 3, 4), (2, 5, 4), (2, 5, 4)], {"key_padding_mask": padding}, batch_first=True)
  yield case([(2, 3, 4)], call={"need_weights": False}, batch_first=True)
  yield case([(3, 4), (5, 4), (5, 4)], {"key_padding_mask": padding[0]}, call={"average_attn_weights": False})
  yield case([(3, 4)], {"attn_mask": "causal"}, batch_first=True)
  yield case([(3, 2, 4)], {"attn_mask": "causal"}, call={"need_weights": False, "is_causal": True})
  yield case([(3, 2, 4)], {"attn_mask": "causal"}, call={"is_causal": True})
  yield case(three, {"attn_mask": wave((3, 5), 2), "key_padding_mask": wave((2, 5), 1)})
  yield case(three, {"attn_mask": wave((4, 3, 5), 2)}, call={"need_weights": False})
  yield case(three, {"key_padding_mask": padding}, add_bias_kv=True, add_zero_attn=True)
  yield case(three, {"attn_mask": wave((3, 5), 2)}, add_bias_kv=True, call={"need_weights": False})
  yield case([(3, 2, 6), (5, 2, 3), (5, 2, 2)], size=6, heads=3, kdim=3, vdim=2, add_zero_attn=True)
  yield case([(3, 2, 4), (5, 2, 3), (5, 2, 4)], kdim=3, bias=False, call={"need_weights": False})


def true_mask(mask):
  """Returns the mask that a case states: "causal" for one of size 3, integers for booleans, or floats."""
  if isinstance(mask, str):
    return nn.Transformer.generate_square_subsequent_mask(3)
  return mask if mask.is_floating_point() else mask.bool()


def transformer_cases():
  """Transformers: name, options, the shapes of the inputs, masks."""
  def case(name, shapes, masks=None, **options):
    activation = {"silu": nn.functional.silu, "module": nn.GELU()}.get(options.get("activation"))
    given = dict(options, activation=activation) if activation else options
    if name == "Transformer":
      module = nn.Transformer(4, 2, 2, 2, 5, 0.0, **given)
    elif name.endswith("Layer"):
      module = getattr(nn, name)(4, 2, 5, 0.0, **given)
    else:
      norm = nn.LayerNorm(4) if options else None
      module = getattr(nn, name)(getattr(nn, name + "Layer")(4, 2, 5, 0.0, **given), 2, norm)
    set_parameters(module)
    inputs = [wave(shape, i).requires_grad_() for i, shape in enumerate(shapes)]
    masks = masks or {}
    out = module(*inputs, **{k: true_mask(m) for k, m in masks.items()})
    result = {"name": name, "options": options, "shapes": [list(s) for s in shapes], "masks": masks}
    return finish(result, module, inputs, [out])

  pad3, pad5 = torch.tensor([[0, 0, 1], [0, 0, 0]]), torch.tensor([[0, 0, 0, 1, 1], [0, 1, 0, 0, 1]])
  yield case("TransformerEncoderLayer", [(3, 2, 4)])
  yield case("TransformerEncoderLayer", [(2, 3, 4)], {"src_key_padding_mask": pad3}, batch_first=True,
             norm_first=True, activation="gelu")
  yield case("TransformerEncoderLayer", [(3, 4)], {"src_mask": "causal"}, bias=False, layer_norm_eps=0.1)
  yield case("TransformerEncoderLayer", [(3, 2, 4)], {"src_mask": wave((4, 3, 3), 1)}, activation="silu")
  yield case("TransformerDecoderLayer", [(3, 2, 4), (5, 2, 4)], {"tgt_mask": "causal"})
  yield case("TransformerDecoderLayer", [(2, 3, 4), (2, 5, 4)],
             {"tgt_key_padding_mask": pad3, "memory_key_padding_mask": pad5, "memory_mask": wave((3, 5), 1)},
             batch_first=True, norm_first=True, activation="module")
  yield case("TransformerEncoder", [(3, 2, 4)], {"mask": "causal"})
  yield case("TransformerEncoder", [(2, 3, 4)], {"src_key_padding_mask": pad3}, batch_first=True)
  yield case("TransformerDecoder", [(3, 2, 4), (5, 2, 4)], {"tgt_mask": "causal", "memory_key_padding_mask": pad5})
  yield case("TransformerDecoder", [(3, 4), (5, 4)], norm_first=True)
  yield case("Transformer", [(5, 2, 4), (3, 2, 4)], {"tgt_mask": "causal"})
  yield case("Transformer", [(2, 5, 4), (2, 3, 4)],
             {"src_key_padding_mask": pad5, "memory_key_padding_mask": pad5, "tgt_key_padding_mask": pad3},
             batch_first=True, activation="gelu", norm_first=True, bias=False)


FAMILIES = {"transformers": {"attention": attention_cases, "transformers": transformer_cases}, "recurrent": {"layers": layer_cases, "cells": cell_cases}}


def cases_of(family):
  torch.set_default_dtype(torch.float64)
  rows = []
  for name, cases in FAMILIES[family].items():
    rows.append("  %s = {" % name)
    rows += ["    %s," % lua({k: v for k, v in case.items() if v is not None}) for case in cases()]
    rows.append("  },")
  torch.set_default_dtype(torch.float32)
  return "\n".join(rows)
