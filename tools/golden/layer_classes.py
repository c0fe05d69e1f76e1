"""Layers and losses as classes: outputs and gradients of inputs and parameters (see nn.py).

A row is the layer in Lua, the layer in PyTorch, and its inputs. Indices among the inputs count from 1 in the file, and
from 0 here. All values are float64."""

import re

import torch
from torch import nn

from nn import lua


def f(*shape):
  return torch.randn(*shape)


def signs(*shape):
  return torch.randint(0, 2, shape) * 2 - 1


def activations():
  yield "nn.Identity(3)", nn.Identity(3), f(2, 3)
  for name in ["ReLU", "ReLU6", "Tanh", "Sigmoid", "SiLU", "Mish", "SELU", "Hardsigmoid", "Hardswish", "Tanhshrink",
               "Softsign", "LogSigmoid", "GELU", "ELU", "CELU", "LeakyReLU", "Hardtanh", "Hardshrink", "Softshrink",
               "Softplus", "GLU", "PReLU", "RReLU"]:
    yield "nn.%s():eval()" % name, getattr(nn, name)().eval(), f(3, 4) * 3
  yield 'nn.GELU("tanh")', nn.GELU("tanh"), f(3, 4)
  yield "nn.ELU(0.5)", nn.ELU(0.5), f(3, 4)
  yield "nn.CELU{alpha = 0.5}", nn.CELU(0.5), f(3, 4)
  yield "nn.LeakyReLU(0.3)", nn.LeakyReLU(0.3), f(3, 4)
  yield "nn.Hardtanh(-0.5, 0.7)", nn.Hardtanh(-0.5, 0.7), f(3, 4)
  yield "nn.Hardshrink(0.8)", nn.Hardshrink(0.8), f(3, 4)
  yield "nn.Softshrink(0.8)", nn.Softshrink(0.8), f(3, 4)
  yield "nn.Softplus(2, 0.5)", nn.Softplus(2, 0.5), f(3, 4)
  yield "nn.Threshold(0.1, 20)", nn.Threshold(0.1, 20), f(3, 4)
  yield "nn.GLU(2)", nn.GLU(1), f(3, 4, 2)
  yield "nn.RReLU(0.1, 0.5):eval()", nn.RReLU(0.1, 0.5).eval(), f(3, 4)
  yield "nn.PReLU(3, 0.1)", nn.PReLU(3, 0.1), f(2, 3, 2)
  for name in ["Softmax", "LogSoftmax", "Softmin"]:
    yield "nn.%s(2)" % name, getattr(nn, name)(1), f(3, 4)
    yield "nn.%s{dim = -1}" % name, getattr(nn, name)(-1), f(2, 3, 2)
    yield "nn.%s()" % name, getattr(nn, name)(), f(3, 4)
    yield "nn.%s()" % name, getattr(nn, name)(), f(2, 3, 2)
  yield "nn.Softmax2d()", nn.Softmax2d(), f(2, 3, 2, 2)
  yield "nn.Softmax2d()", nn.Softmax2d(), f(3, 2, 2)


def norms():
  for k, x in [(1, f(3, 4, 5)), (2, f(2, 4, 3, 2)), (3, f(2, 4, 2, 1, 3))]:
    for name in ["BatchNorm", "InstanceNorm"]:
      new = getattr(nn, "%s%dd" % (name, k))
      yield "nn.%s%dd(4)" % (name, k), new(4), x
      yield "nn.%s%dd(4, {affine = true, eps = 0.1})" % (name, k), new(4, affine=True, eps=0.1), x
      yield ("nn.%s%dd(4, {track_running_stats = true, momentum = 0.3})" % (name, k),
             new(4, track_running_stats=True, momentum=0.3), x)
      yield ("nn.%s%dd(4, {track_running_stats = true, affine = true}):eval()" % (name, k),
             new(4, track_running_stats=True, affine=True).eval(), x)
      yield "nn.%s%dd(4, {affine = true, bias = false})" % (name, k), new(4, affine=True, bias=False), x
    yield "nn.InstanceNorm%dd(4, 1e-5, 0.1, true)" % k, getattr(nn, "InstanceNorm%dd" % k)(4, affine=True), x[0]
    yield "nn.LocalResponseNorm(3, 0.5)", nn.LocalResponseNorm(3, 0.5), x
  yield "nn.BatchNorm1d(4)", nn.BatchNorm1d(4), f(3, 4)
  yield "nn.BatchNorm1d(4, {momentum = false})", nn.BatchNorm1d(4, momentum=None), f(3, 4)
  yield "nn.LocalResponseNorm(4, {alpha = 0.3, beta = 0.5, k = 2})", nn.LocalResponseNorm(4, 0.3, 0.5, 2), f(2, 5, 3)
  yield "nn.GroupNorm(2, 4)", nn.GroupNorm(2, 4), f(2, 4, 3)
  yield "nn.GroupNorm(4, 4, 0.1)", nn.GroupNorm(4, 4, 0.1), f(2, 4, 2, 2)
  yield "nn.GroupNorm(1, 4, {affine = false})", nn.GroupNorm(1, 4, affine=False), f(3, 4)
  yield "nn.GroupNorm(2, 4, {bias = false})", nn.GroupNorm(2, 4, bias=False), f(2, 4, 3)
  yield "nn.RMSNorm(4)", nn.RMSNorm(4), f(2, 4)
  yield "nn.RMSNorm({3, 4}, 0.1)", nn.RMSNorm((3, 4), 0.1), f(2, 3, 4)
  yield "nn.RMSNorm{4, elementwise_affine = false}", nn.RMSNorm(4, elementwise_affine=False), f(2, 4)
  yield "nn.LayerNorm({3, 4}, {bias = false})", nn.LayerNorm((3, 4), bias=False), f(2, 3, 4)


def shapes():
  yield "nn.Linear(3, 2)", nn.Linear(3, 2), f(4, 3)
  yield "nn.Bilinear(3, 2, 4)", nn.Bilinear(3, 2, 4), f(5, 3), f(5, 2)
  yield "nn.Bilinear(3, 2, 4, false)", nn.Bilinear(3, 2, 4, False), f(2, 5, 3), f(2, 5, 2)
  yield "nn.Flatten()", nn.Flatten(), f(2, 3, 4)
  yield "nn.Flatten(1, 2)", nn.Flatten(0, 1), f(2, 3, 4)
  yield "nn.Unflatten(2, {2, 3})", nn.Unflatten(1, (2, 3)), f(2, 6, 4)
  yield "nn.Unflatten(-1, {2, -1})", nn.Unflatten(-1, (2, -1)), f(2, 6)
  yield "nn.PixelShuffle(2)", nn.PixelShuffle(2), f(1, 4, 2, 3)
  yield "nn.PixelUnshuffle(2)", nn.PixelUnshuffle(2), f(1, 2, 4, 2)
  yield "nn.ChannelShuffle(2)", nn.ChannelShuffle(2), f(1, 4, 2, 2)
  yield "nn.Unfold(2, {stride = 2, padding = 1})", nn.Unfold(2, stride=2, padding=1), f(1, 2, 4, 4)
  yield "nn.Fold({4, 4}, 2, {stride = 2})", nn.Fold((4, 4), 2, stride=2), f(1, 8, 4)
  yield "nn.Upsample{scale_factor = 2}", nn.Upsample(scale_factor=2), f(1, 2, 3)
  yield ('nn.Upsample{size = {5, 4}, mode = "bilinear"}', nn.Upsample(size=(5, 4), mode="bilinear"), f(1, 2, 3, 3))
  yield "nn.UpsamplingNearest2d{scale_factor = 2}", nn.UpsamplingNearest2d(scale_factor=2), f(1, 1, 2, 3)
  yield "nn.UpsamplingBilinear2d(4)", nn.UpsamplingBilinear2d(4), f(1, 1, 2, 3)
  for k, x in [(1, f(1, 2, 6)), (2, f(1, 2, 4, 6)), (3, f(1, 1, 4, 4, 4))]:
    yield "nn.MaxPool%dd(2)" % k, getattr(nn, "MaxPool%dd" % k)(2), x
    yield ("nn.MaxPool%dd(3, 2, 1, {ceil_mode = true})" % k,
           getattr(nn, "MaxPool%dd" % k)(3, 2, 1, ceil_mode=True), x)
    yield ("nn.AvgPool%dd(3, 2, 1, {count_include_pad = false})" % k,
           getattr(nn, "AvgPool%dd" % k)(3, 2, 1, count_include_pad=False), x)
    yield "nn.LPPool%dd(2, 2)" % k, getattr(nn, "LPPool%dd" % k)(2, 2), x.abs() + 0.1
    yield "nn.AdaptiveAvgPool%dd(2)" % k, getattr(nn, "AdaptiveAvgPool%dd" % k)(2), x
    yield "nn.AdaptiveMaxPool%dd(2)" % k, getattr(nn, "AdaptiveMaxPool%dd" % k)(2), x
    top, at = getattr(nn, "MaxPool%dd" % k)(2, return_indices=True)(x)
    yield "nn.MaxUnpool%dd(2)" % k, getattr(nn, "MaxUnpool%dd" % k)(2), top, at
    for name in ["Reflection", "Replication", "Circular", "Zero"]:
      yield "nn.%sPad%dd(1)" % (name, k), getattr(nn, "%sPad%dd" % (name, k))(1), x
      pads = [1, 2, 0, 1, 1, 0][:2 * k]
      yield ("nn.%sPad%dd{%s}" % (name, k, ", ".join(map(str, pads))),
             getattr(nn, "%sPad%dd" % (name, k))(tuple(pads)), x)
    yield "nn.ConstantPad%dd(1, 3.5)" % k, getattr(nn, "ConstantPad%dd" % k)(1, 3.5), x
    for kind in ["Conv", "ConvTranspose"]:
      x = x[:, :1]
      yield ("nn.%s%dd(1, 2, 2, {stride = 2, padding = 1})" % (kind, k),
             getattr(nn, "%s%dd" % (kind, k))(1, 2, 2, stride=2, padding=1), x)
  samples = torch.tensor([[[0.1, 0.8], [0.4, 0.3]]])
  yield ("nn.FractionalMaxPool2d{2, output_size = 3, _random_samples = %s}" % "lt.tensor({{{0.1, 0.8}, {0.4, 0.3}}}, "
         "{dtype = dtype})", nn.FractionalMaxPool2d(2, output_size=3, _random_samples=samples), f(1, 2, 5, 6))
  samples = torch.tensor([[[0.1, 0.8, 0.5]]])
  yield ("nn.FractionalMaxPool3d{2, output_size = 2, _random_samples = %s}" % "lt.tensor({{{0.1, 0.8, 0.5}}}, "
         "{dtype = dtype})", nn.FractionalMaxPool3d(2, output_size=2, _random_samples=samples), f(1, 1, 4, 5, 4))
  for name in ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]:
    x = f(*{"1": (2, 3, 2), "2": (2, 3, 2, 2)}.get(name[7:8], (2, 3, 2, 2, 2)))
    yield "nn.%s(0.4):eval()" % name, getattr(nn, name)(0.4).eval(), x
    yield "nn.%s(0)" % name, getattr(nn, name)(0.0), x


def tables():
  ids = torch.tensor([[0, 3, 1], [3, 5, 3]])
  flat = torch.tensor([0, 3, 1, 3, 5, 3])
  yield "nn.Embedding(6, 2)", nn.Embedding(6, 2), ids
  yield "nn.Embedding(6, 2, {padding_idx = 4})", nn.Embedding(6, 2, padding_idx=3), ids
  yield "nn.Embedding(6, 2, {padding_idx = -3})", nn.Embedding(6, 2, padding_idx=-3), ids
  yield "nn.Embedding(6, 2, {max_norm = 0.7})", nn.Embedding(6, 2, max_norm=0.7), ids
  yield "nn.Embedding(6, 2, {max_norm = 0.7, norm_type = 1})", nn.Embedding(6, 2, max_norm=0.7, norm_type=1), ids
  yield "nn.Embedding(6, 2, {scale_grad_by_freq = true})", nn.Embedding(6, 2, scale_grad_by_freq=True), ids
  for mode in ["sum", "mean", "max"]:
    text = 'mode = "%s"' % mode
    yield "nn.EmbeddingBag(6, 2, {%s})" % text, nn.EmbeddingBag(6, 2, mode=mode), ids
    yield "nn.EmbeddingBag(6, 2, {%s})" % text, nn.EmbeddingBag(6, 2, mode=mode), flat, torch.tensor([0, 2, 2])
    yield ("nn.EmbeddingBag(6, 2, {%s, padding_idx = 4})" % text,
           nn.EmbeddingBag(6, 2, mode=mode, padding_idx=3), ids)
    yield ("nn.EmbeddingBag(6, 2, {%s, include_last_offset = true})" % text,
           nn.EmbeddingBag(6, 2, mode=mode, include_last_offset=True), flat, torch.tensor([0, 2, 6]))
  yield "nn.EmbeddingBag(6, 2, {max_norm = 0.7})", nn.EmbeddingBag(6, 2, max_norm=0.7), ids
  yield ('nn.EmbeddingBag(6, 2, {mode = "sum", scale_grad_by_freq = true})',
         nn.EmbeddingBag(6, 2, mode="sum", scale_grad_by_freq=True), ids)
  yield 'nn.EmbeddingBag(6, 2, {mode = "sum"})', nn.EmbeddingBag(6, 2, mode="sum"), ids, None, f(2, 3)
  yield "nn.CosineSimilarity()", nn.CosineSimilarity(), f(3, 4), f(3, 4)
  yield "nn.CosineSimilarity{dim = 1, eps = 0.1}", nn.CosineSimilarity(0, 0.1), f(3, 4), f(3, 4)
  yield "nn.PairwiseDistance()", nn.PairwiseDistance(), f(3, 4), f(3, 4)
  yield "nn.PairwiseDistance(1, 0.1, true)", nn.PairwiseDistance(1, 0.1, True), f(3, 4), f(4)


def losses():
  weight = torch.tensor([0.5, 1.0, 2.0, 0.25])
  text = "weight = lt.tensor({0.5, 1, 2, 0.25}, {dtype = dtype})"
  labels = torch.tensor([1, 0, 3, 2, 3])
  x, t, p = f(5, 4), f(5, 4), torch.rand(5, 4)
  zero_one = torch.randint(0, 2, (5, 4)).double()
  for how in ["mean", "sum", "none"]:
    def both(name, *inputs, lua_options="", **options):
      options["reduction"] = how
      shown = 'reduction = "%s"%s' % (how, ", " + lua_options if lua_options else "")
      return "nn.%s{%s}" % (name, shown), getattr(nn, name)(**options), *inputs

    yield both("MSELoss", x, t)
    yield both("L1Loss", x, t)
    yield both("SmoothL1Loss", x, t)
    yield both("SmoothL1Loss", x, t, lua_options="beta = 0.3", beta=0.3)
    yield both("HuberLoss", x, t, lua_options="delta = 0.7", delta=0.7)
    yield both("CrossEntropyLoss", x, labels)
    yield both("CrossEntropyLoss", x, labels, lua_options=text + ", ignore_index = 4, label_smoothing = 0.1",
               weight=weight, ignore_index=3, label_smoothing=0.1)
    yield both("CrossEntropyLoss", x, torch.softmax(t, 1))
    yield both("NLLLoss", torch.log_softmax(x, 1), labels)
    yield both("NLLLoss", torch.log_softmax(x, 1), labels, lua_options=text + ", ignore_index = 2", weight=weight,
               ignore_index=1)
    yield both("MultiMarginLoss", x, labels)
    yield both("MultiMarginLoss", x, labels, lua_options=text + ", p = 2, margin = 0.5", weight=weight, p=2, margin=0.5)
    yield both("MultiLabelMarginLoss", x, torch.tensor([[3, 0, -1, 1]] * 5))
    yield both("MultiLabelSoftMarginLoss", x, zero_one)
    yield both("MultiLabelSoftMarginLoss", x, zero_one, lua_options=text, weight=weight)
    yield both("BCELoss", p, zero_one)
    yield both("BCELoss", p, zero_one, lua_options=text, weight=weight)
    yield both("BCEWithLogitsLoss", x, zero_one)
    yield both("BCEWithLogitsLoss", x, zero_one, lua_options=text + ", pos_" + text, weight=weight, pos_weight=weight)
    yield both("KLDivLoss", torch.log_softmax(x, 1), torch.softmax(t, 1))
    yield both("KLDivLoss", torch.log_softmax(x, 1), torch.log_softmax(t, 1), lua_options="log_target = true",
               log_target=True)
    yield both("PoissonNLLLoss", x, torch.tensor([[0.0, 1.0, 2.0, 5.0]] * 5))
    yield both("PoissonNLLLoss", p, torch.tensor([[0.0, 1.0, 2.0, 5.0]] * 5), lua_options="log_input = false, full = true",
               log_input=False, full=True)
    yield both("GaussianNLLLoss", x, t, p)
    yield both("GaussianNLLLoss", x, t, p[:, :1], lua_options="full = true, eps = 0.3", full=True, eps=0.3)
    yield both("HingeEmbeddingLoss", x, signs(5, 4))
    yield both("HingeEmbeddingLoss", x, signs(5, 4), lua_options="margin = 0.5", margin=0.5)
    yield both("SoftMarginLoss", x, signs(5, 4).double())
    yield both("CosineEmbeddingLoss", x, t, signs(5))
    yield both("CosineEmbeddingLoss", x, t, signs(5), lua_options="margin = 0.2", margin=0.2)
    yield both("MarginRankingLoss", x[:, 0], t[:, 0], signs(5), lua_options="margin = 0.3", margin=0.3)
    yield both("TripletMarginLoss", x, t, f(5, 4))
    yield both("TripletMarginLoss", x, t, f(5, 4), lua_options="margin = 2, p = 1, swap = true", margin=2.0, p=1.0,
               swap=True)
    yield both("TripletMarginWithDistanceLoss", x, t, f(5, 4))
    yield both("TripletMarginWithDistanceLoss", x, t, f(5, 4),
               lua_options="swap = true, distance_function = function(a, b) return 1 - F.cosine_similarity(a, b) end",
               swap=True, distance_function=lambda a, b: 1 - torch.cosine_similarity(a, b))
    yield both("CTCLoss", torch.log_softmax(f(6, 2, 4), 2), torch.tensor([[1, 2, 2], [3, 1, 2]]),
               torch.tensor([6, 5]), torch.tensor([3, 2]))
  yield 'nn.KLDivLoss{reduction = "batchmean"}', nn.KLDivLoss(reduction="batchmean"), torch.log_softmax(x, 1), p
  yield "nn.MSELoss(false)", nn.MSELoss(False), x, t
  yield "nn.L1Loss(nil, false)", nn.L1Loss(None, False), x, t
  yield "nn.CrossEntropyLoss(lt.tensor({0.5, 1, 2, 0.25}, {dtype = dtype}))", nn.CrossEntropyLoss(weight), x, labels
  yield "nn.CrossEntropyLoss()", nn.CrossEntropyLoss(), f(2, 4, 3), torch.tensor([[0, 1, 3], [2, 2, 0]])


def lazies():
  for k, x in [(1, f(2, 3, 4)), (2, f(2, 2, 3, 4)), (3, f(1, 2, 2, 3, 3))]:
    rows = [("nn.LazyConv%dd(2, 2, {stride = 2})", getattr(nn, "LazyConv%dd" % k)(2, 2, stride=2)),
            ("nn.LazyConvTranspose%dd(2, 2)", getattr(nn, "LazyConvTranspose%dd" % k)(2, 2)),
            ("nn.LazyBatchNorm%dd()", getattr(nn, "LazyBatchNorm%dd" % k)()),
            ("nn.LazyInstanceNorm%dd{affine = true, track_running_stats = true}",
             getattr(nn, "LazyInstanceNorm%dd" % k)(affine=True, track_running_stats=True))]
    for text, layer in rows:
      layer(x)  # creates the parameters
      yield text % k, layer, x
  layer = nn.LazyLinear(3)
  layer(f(2, 4))
  yield "nn.LazyLinear(3)", layer, f(2, 4)


class First(nn.Module):
  """The first result, or the loss, of AdaptiveLogSoftmaxWithLoss."""

  def __init__(self, layer, index):
    super().__init__()
    self.layer, self.index = layer, index

  def forward(self, *inputs):
    return self.layer(*inputs)[self.index]

  def state_dict(self):
    return self.layer.state_dict()

  def named_parameters(self, recurse=True):
    return self.layer.named_parameters()


def classes():
  labels = torch.tensor([0, 7, 3, 2, 9, 4, 1])
  for index in (0, 1):
    layer = nn.AdaptiveLogSoftmaxWithLoss(6, 10, [3, 7], div_value=2.0, head_bias=True)
    yield ("pick(%d, nn.AdaptiveLogSoftmaxWithLoss(6, 10, {3, 7}, {div_value = 2, head_bias = true}))" % (index + 1),
           First(layer, index), f(7, 6), labels)
  yield ("pick(1, nn.AdaptiveLogSoftmaxWithLoss(6, 10, {3}))", First(nn.AdaptiveLogSoftmaxWithLoss(6, 10, [3]), 0),
         f(6), labels[1])
  yield ("pick(1, nn.AdaptiveLogSoftmaxWithLoss(6, 10, {3}))", First(nn.AdaptiveLogSoftmaxWithLoss(6, 10, [3]), 0),
         f(2, 6), labels[2:4] - 2)
  yield "nn.LinearCrossEntropyLoss(6, 10)", nn.LinearCrossEntropyLoss(6, 10), f(7, 6), labels
  yield ('nn.LinearCrossEntropyLoss(6, 4, {out_features = {2}, bias = true, reduction = "sum", label_smoothing = 0.1})',
         nn.LinearCrossEntropyLoss(6, 4, out_features=(2,), bias=True, reduction="sum", label_smoothing=0.1), f(3, 6),
         torch.tensor([[0, 1], [2, 3], [1, 1]]))


LENGTHS = {"CTCLoss": (2, 3)}  # inputs that are integers, but no indices
NO_TARGET = ("Cosine", "MarginRanking", "Triplet", "Gaussian")  # losses with gradients of further inputs
SIGNS = ("HingeEmbedding", "CosineEmbedding", "MarginRanking")


def run(text, layer, *inputs):
  # Reproducible parameters that are not all alike
  for p in layer.parameters():
    if p.ndim == 1:
      p.data = p.data + torch.linspace(-0.2, 0.3, p.numel())
  state = [[name, value.clone()] for name, value in layer.state_dict().items()]
  given = [x.clone() if x is not None else None for x in inputs]
  name = text[3:].split("(")[0].split("{")[0]
  for i, x in enumerate(given):
    is_target = i > 0 and name.endswith("Loss") and not name.startswith(NO_TARGET)
    if x is not None and x.is_floating_point() and not is_target:
      x.requires_grad_()
  out = layer(*given)
  probe = torch.cos(torch.arange(out.numel(), dtype=torch.float64)).reshape(out.shape)
  if out.requires_grad:
    (out * probe).sum().backward()
  shown, grads = [], []
  for i, x in enumerate(inputs):
    count = not any(s in name for s in SIGNS) and i not in LENGTHS.get(name, ())
    shown.append(False if x is None else x + 1 if not x.is_floating_point() and count else x)
    grads.append(given[i].grad if x is not None and given[i].requires_grad and given[i].grad is not None else False)
  after = [[n, b.clone()] for n, b in layer.named_buffers()]
  return {"layer": text.replace('"', '\\"'), "inputs": shown, "state": state, "out": out, "grads": grads,
          "parameters": [[n, p.grad if p.grad is not None else False] for n, p in layer.named_parameters()],
          "buffers": after}


FLOAT = re.compile(r"-?[0-9]+[.][0-9]+(e[-+]?[0-9]+)?")


def short(match):
  """Returns a number with 12 digits, which the tolerances of the spec need at most."""
  return repr(float("%.12g" % float(match.group())))


def cases_of(_family):
  torch.set_default_dtype(torch.float64)
  torch.manual_seed(21)
  rows = []
  for cases in (activations, norms, shapes, tables, losses, lazies, classes):
    rows += ["  %s," % FLOAT.sub(short, lua(run(*case))) for case in cases()]
  torch.set_default_dtype(torch.float32)
  return "\n".join(rows)
