--- The classes of autocast of the composite ops written in Lua, as the op table has them for its
-- own rows (src/tensor/ops.def): PyTorch's lists. Inside such an op autocast is paused.

local by_class = {
  LOW = {"lt.addbmm", "linalg.vecdot"},
  LOW_GPU = {"lt.addmv", "lt.addr"},
  HIGH = {"F.cosine_embedding_loss", "F.hinge_embedding_loss", "F.poisson_nll_loss",
    "F.smooth_l1_loss", "F.huber_loss", "F.margin_ranking_loss", "F.soft_margin_loss",
    "F.triplet_margin_loss", "F.multi_margin_loss", "F.multilabel_margin_loss",
    "lt.cdist"},
  HIGH_CPU = {"F.grid_sample", "lt.quantile", "lt.nanquantile", "lt.stft", "lt.ctc_loss",
    "F.max_unpool2d", "F.max_unpool3d", "F.fractional_max_pool2d", "F.fractional_max_pool3d",
    "lt.cholesky", "lt.cholesky_inverse", "lt.cholesky_solve",
    "lt.inverse", "lt.lu_solve", "linalg.lu_solve", "lt.orgqr", "lt.ormqr", "lt.pinverse", "lt.qr",
    "lt.svd", "lt.lstsq", "linalg.cond", "linalg.matrix_rank", "linalg.solve", "linalg.cholesky",
    "linalg.svdvals", "linalg.eigvals", "linalg.eigvalsh", "linalg.inv",
    "linalg.householder_product", "linalg.tensorinv", "linalg.tensorsolve", "linalg.qr",
    "linalg.cholesky_ex", "linalg.svd", "linalg.eig", "linalg.eigh", "linalg.lstsq",
    "linalg.inv_ex", "fft.fft", "fft.ifft", "fft.fft2", "fft.ifft2", "fft.fftn", "fft.ifftn",
    "fft.rfft", "fft.irfft", "fft.rfft2", "fft.irfft2", "fft.rfftn", "fft.irfftn", "fft.hfft",
    "fft.ihfft"},
  HIGH_GPU = {"lt.cosine_similarity", "lt.dist", "lt.pdist", "lt.renorm", "lt.norm",
    "lt.group_norm", "lt.rms_norm", "F.interpolate", "F.upsample", "linalg.vector_norm",
    "linalg.matrix_norm", "linalg.norm"},
  WIDEST = {"lt.bilinear", "lt.cross", "linalg.cross", "lt.index_put", "lt.vdot"},
}

local classes = {}

for class, list in pairs(by_class) do
  for _, name in ipairs(list) do classes[name] = class end
end

-- A function of the device type and the arguments returns the class, or nil.

-- Reflection of one or two dims and replication run in float32 on the CPU.
classes["F.pad"] = function(kind, _, pad, mode)
  if kind ~= "cpu" or mode ~= "replicate" and mode ~= "reflect" then return nil end
  return (mode == "replicate" or #pad <= 4) and "HIGH_CPU" or nil
end

-- On GPUs the gradients of probabilities in float16 may be out of range.
classes["F.binary_cross_entropy"] = function(kind)
  if kind ~= "cpu" then
    require("lutra.internal.args").fail("binary_cross_entropy: cannot run under autocast: its "
      .. "gradients may be out of range in float16\n"
      .. "hint: F.binary_cross_entropy_with_logits(logits, target), without the sigmoid")
  end
  return "HIGH_CPU"
end

return classes
