-- The parameters that PyTorch 2.15.0 takes by position, in its order; each text is an overload.
-- Made by tools/gen_parameter_orders.py.
return {
  ["F.binary_cross_entropy_with_logits"] = {
    "input target weight size_average reduce reduction pos_weight",
  },
  ["F.cosine_similarity"] = {
    "x1 x2 dim eps",
  },
  ["F.cross_entropy"] = {
    "input target weight size_average ignore_index reduce reduction label_smoothing",
  },
  ["F.dropout"] = {
    "input p training inplace",
  },
  ["F.elu"] = {
    "input alpha inplace",
  },
  ["F.embedding"] = {
    "input weight padding_idx max_norm norm_type scale_grad_by_freq sparse",
  },
  ["F.gelu"] = {
    "input approximate",
  },
  ["F.huber_loss"] = {
    "input target reduction delta weight",
  },
  ["F.l1_loss"] = {
    "input target size_average reduce reduction weight",
  },
  ["F.layer_norm"] = {
    "input normalized_shape weight bias eps",
  },
  ["F.leaky_relu"] = {
    "input negative_slope inplace",
  },
  ["F.linear"] = {
    "input weight bias",
  },
  ["F.log_softmax"] = {
    "input dim _stacklevel dtype",
  },
  ["F.logsigmoid"] = {
    "input",
  },
  ["F.mse_loss"] = {
    "input target size_average reduce reduction weight",
  },
  ["F.nll_loss"] = {
    "input target weight size_average ignore_index reduce reduction",
  },
  ["F.normalize"] = {
    "input p dim eps out",
  },
  ["F.one_hot"] = {
    "tensor num_classes",
  },
  ["F.relu"] = {
    "input inplace",
  },
  ["F.scaled_dot_product_attention"] = {
    "query key value attn_mask dropout_p is_causal scale enable_gqa",
  },
  ["F.sigmoid"] = {
    "input",
  },
  ["F.silu"] = {
    "input inplace",
  },
  ["F.softmax"] = {
    "input dim _stacklevel dtype",
  },
  ["F.softplus"] = {
    "input beta threshold",
  },
  ["F.tanh"] = {
    "input",
  },
  ["nn.CrossEntropyLoss"] = {
    "weight size_average ignore_index reduce reduction label_smoothing",
  },
  ["nn.DataParallel"] = {
    "module device_ids output_device dim",
  },
  ["nn.Dropout"] = {
    "p inplace",
  },
  ["nn.Embedding"] = {
    "num_embeddings embedding_dim padding_idx max_norm norm_type scale_grad_by_freq sparse _weight _freeze device dtype",
  },
  ["nn.Flatten"] = {
    "start_dim end_dim",
  },
  ["nn.GELU"] = {
    "approximate",
  },
  ["nn.HuberLoss"] = {
    "reduction delta",
  },
  ["nn.L1Loss"] = {
    "size_average reduce reduction",
  },
  ["nn.LayerNorm"] = {
    "normalized_shape eps elementwise_affine bias device dtype",
  },
  ["nn.LeakyReLU"] = {
    "negative_slope inplace",
  },
  ["nn.Linear"] = {
    "in_features out_features bias device dtype",
  },
  ["nn.LogSoftmax"] = {
    "dim",
  },
  ["nn.MSELoss"] = {
    "size_average reduce reduction",
  },
  ["nn.ModuleList"] = {
    "modules",
  },
  ["nn.NLLLoss"] = {
    "weight size_average ignore_index reduce reduction",
  },
  ["nn.ReLU"] = {
    "inplace",
  },
  ["nn.SiLU"] = {
    "inplace",
  },
  ["nn.Softmax"] = {
    "dim",
  },
  ["nn.init.calculate_gain"] = {
    "nonlinearity param",
  },
  ["nn.init.constant_"] = {
    "tensor val",
  },
  ["nn.init.eye_"] = {
    "tensor",
  },
  ["nn.init.kaiming_normal_"] = {
    "tensor a mode nonlinearity generator",
  },
  ["nn.init.kaiming_uniform_"] = {
    "tensor a mode nonlinearity generator",
  },
  ["nn.init.normal_"] = {
    "tensor mean std generator",
  },
  ["nn.init.ones_"] = {
    "tensor",
  },
  ["nn.init.trunc_normal_"] = {
    "tensor mean std a b generator",
  },
  ["nn.init.uniform_"] = {
    "tensor a b generator",
  },
  ["nn.init.xavier_normal_"] = {
    "tensor gain generator",
  },
  ["nn.init.xavier_uniform_"] = {
    "tensor gain generator",
  },
  ["nn.init.zeros_"] = {
    "tensor",
  },
  ["nn.utils.clip_grad_norm_"] = {
    "parameters max_norm norm_type error_if_nonfinite foreach",
  },
  ["nn.utils.clip_grad_value_"] = {
    "parameters clip_value foreach",
  },
  ["op.abs"] = {
    "self",
  },
  ["op.acos"] = {
    "self",
  },
  ["op.acosh"] = {
    "self",
  },
  ["op.add"] = {
    "self other",
    "self other alpha",
  },
  ["op.addcdiv"] = {
    "self tensor1 tensor2",
  },
  ["op.addcmul"] = {
    "self tensor1 tensor2",
  },
  ["op.addmm"] = {
    "self mat1 mat2",
    "self mat1 mat2 out_dtype",
  },
  ["op.all"] = {
    "self",
    "self dim keepdim",
  },
  ["op.allclose"] = {
    "self other rtol atol equal_nan",
  },
  ["op.amax"] = {
    "self dim keepdim",
  },
  ["op.amin"] = {
    "self dim keepdim",
  },
  ["op.angle"] = {
    "self",
  },
  ["op.any"] = {
    "self",
    "self dim keepdim",
  },
  ["op.arange"] = {
    "end",
    "start end",
    "start end step",
  },
  ["op.argmax"] = {
    "self dim keepdim",
  },
  ["op.argmin"] = {
    "self dim keepdim",
  },
  ["op.argsort"] = {
    "self",
    "self dim descending",
  },
  ["op.as_strided"] = {
    "self size stride storage_offset",
  },
  ["op.asin"] = {
    "self",
  },
  ["op.asinh"] = {
    "self",
  },
  ["op.atan"] = {
    "self",
  },
  ["op.atan2"] = {
    "self other",
  },
  ["op.atanh"] = {
    "self",
  },
  ["op.baddbmm"] = {
    "self batch1 batch2",
    "self batch1 batch2 out_dtype",
  },
  ["op.bernoulli"] = {
    "self",
    "self p",
  },
  ["op.binary_cross_entropy_with_logits"] = {
    "self target weight pos_weight reduction",
  },
  ["op.bitwise_and"] = {
    "self other",
  },
  ["op.bitwise_left_shift"] = {
    "self other",
  },
  ["op.bitwise_not"] = {
    "self",
  },
  ["op.bitwise_or"] = {
    "self other",
  },
  ["op.bitwise_right_shift"] = {
    "self other",
  },
  ["op.bitwise_xor"] = {
    "self other",
  },
  ["op.bmm"] = {
    "self mat2",
    "self mat2 out_dtype",
  },
  ["op.broadcast_to"] = {
    "self size",
  },
  ["op.cat"] = {
    "tensors dim",
  },
  ["op.ceil"] = {
    "self",
  },
  ["op.chunk"] = {
    "self chunks dim",
  },
  ["op.clamp"] = {
    "self min max",
  },
  ["op.clone"] = {
    "self",
  },
  ["op.complex"] = {
    "real imag",
  },
  ["op.conj"] = {
    "self",
  },
  ["op.contiguous"] = {
    "self",
  },
  ["op.copy"] = {
    "self",
    "self src non_blocking",
  },
  ["op.copy_"] = {
    "self other",
    "self src non_blocking",
  },
  ["op.copysign"] = {
    "self other",
  },
  ["op.cos"] = {
    "self",
  },
  ["op.cosh"] = {
    "self",
  },
  ["op.cosine_similarity"] = {
    "x1 x2 dim eps",
  },
  ["op.count_nonzero"] = {
    "self dim",
  },
  ["op.cross_entropy"] = {
    "input target weight size_average ignore_index reduce reduction label_smoothing",
  },
  ["op.cummax"] = {
    "self dim",
  },
  ["op.cummin"] = {
    "self dim",
  },
  ["op.cumprod"] = {
    "self dim",
  },
  ["op.cumsum"] = {
    "self dim",
  },
  ["op.deg2rad"] = {
    "self",
  },
  ["op.detach"] = {
    "self",
  },
  ["op.diag"] = {
    "self diagonal",
  },
  ["op.diagonal"] = {
    "self offset dim1 dim2",
  },
  ["op.div"] = {
    "self other",
  },
  ["op.dot"] = {
    "self tensor",
  },
  ["op.dropout"] = {
    "input p train",
  },
  ["op.elu"] = {
    "input alpha inplace",
    "self alpha scale input_scale",
  },
  ["op.embedding"] = {
    "weight indices padding_idx scale_grad_by_freq sparse",
  },
  ["op.empty"] = {
    "size",
  },
  ["op.empty_like"] = {
    "self",
  },
  ["op.eq"] = {
    "a b",
    "self other",
  },
  ["op.equal"] = {
    "self other",
  },
  ["op.erf"] = {
    "self",
  },
  ["op.erfc"] = {
    "self",
  },
  ["op.exp"] = {
    "self",
  },
  ["op.exp2"] = {
    "self",
  },
  ["op.expand"] = {
    "self size",
  },
  ["op.expand_as"] = {
    "self other",
  },
  ["op.expm1"] = {
    "self",
  },
  ["op.exponential"] = {
    "self lambd",
  },
  ["op.eye"] = {
    "n",
    "n m",
  },
  ["op.fill"] = {
    "self value",
  },
  ["op.flatten"] = {
    "self start_dim end_dim",
  },
  ["op.flip"] = {
    "self dims",
  },
  ["op.floor"] = {
    "self",
  },
  ["op.floor_divide"] = {
    "self other",
  },
  ["op.fmax"] = {
    "self other",
  },
  ["op.fmin"] = {
    "self other",
  },
  ["op.fmod"] = {
    "self other",
  },
  ["op.frac"] = {
    "self",
  },
  ["op.full"] = {
    "size fill_value",
  },
  ["op.full_like"] = {
    "self fill_value",
  },
  ["op.gather"] = {
    "self dim index",
  },
  ["op.ge"] = {
    "self other",
  },
  ["op.gelu"] = {
    "self",
  },
  ["op.gt"] = {
    "self other",
  },
  ["op.huber_loss"] = {
    "input target reduction delta weight",
    "self target reduction delta",
  },
  ["op.hypot"] = {
    "self other",
  },
  ["op.imag"] = {
    "self",
  },
  ["op.index_add"] = {
    "self dim index source",
  },
  ["op.index_copy"] = {
    "self dim index source",
  },
  ["op.index_fill"] = {
    "self dim index value",
  },
  ["op.index_select"] = {
    "self dim index",
  },
  ["op.isclose"] = {
    "self other rtol atol equal_nan",
  },
  ["op.isfinite"] = {
    "self",
  },
  ["op.isinf"] = {
    "self",
  },
  ["op.isnan"] = {
    "self",
  },
  ["op.l1_loss"] = {
    "input target size_average reduce reduction weight",
    "self target reduction",
  },
  ["op.layer_norm"] = {
    "input normalized_shape weight bias eps cudnn_enable",
  },
  ["op.le"] = {
    "self other",
  },
  ["op.leaky_relu"] = {
    "input negative_slope inplace",
    "self negative_slope",
  },
  ["op.lerp"] = {
    "self end weight",
  },
  ["op.linear"] = {
    "input weight bias",
  },
  ["op.linspace"] = {
    "start end steps",
  },
  ["op.log"] = {
    "self",
  },
  ["op.log10"] = {
    "self",
  },
  ["op.log1p"] = {
    "self",
  },
  ["op.log2"] = {
    "self",
  },
  ["op.log_softmax"] = {
    "self dim dtype",
  },
  ["op.logical_and"] = {
    "self other",
  },
  ["op.logical_not"] = {
    "self",
  },
  ["op.logical_or"] = {
    "self other",
  },
  ["op.logical_xor"] = {
    "self other",
  },
  ["op.logspace"] = {
    "start end steps base",
  },
  ["op.logsumexp"] = {
    "self dim keepdim",
  },
  ["op.lt"] = {
    "self other",
  },
  ["op.masked_fill"] = {
    "self mask value",
  },
  ["op.masked_scatter"] = {
    "self mask source",
  },
  ["op.masked_select"] = {
    "self mask",
  },
  ["op.matmul"] = {
    "self other",
  },
  ["op.max"] = {
    "self",
    "self dim keepdim",
    "self other",
  },
  ["op.maximum"] = {
    "self other",
  },
  ["op.mean"] = {
    "self",
    "self dim keepdim",
  },
  ["op.min"] = {
    "self",
    "self dim keepdim",
    "self other",
  },
  ["op.minimum"] = {
    "self other",
  },
  ["op.mm"] = {
    "self mat2",
    "self mat2 out_dtype",
  },
  ["op.movedim"] = {
    "self source destination",
  },
  ["op.mse_loss"] = {
    "input target size_average reduce reduction weight",
    "self target reduction",
  },
  ["op.mul"] = {
    "self other",
  },
  ["op.multinomial"] = {
    "self num_samples replacement",
  },
  ["op.mv"] = {
    "self vec",
  },
  ["op.nan_to_num"] = {
    "self nan posinf neginf",
  },
  ["op.nansum"] = {
    "self dim keepdim",
  },
  ["op.narrow"] = {
    "self dim start length",
  },
  ["op.ne"] = {
    "a b",
    "self other",
  },
  ["op.neg"] = {
    "self",
  },
  ["op.new_empty"] = {
    "self size",
  },
  ["op.new_full"] = {
    "self size fill_value",
  },
  ["op.new_ones"] = {
    "self size",
  },
  ["op.new_zeros"] = {
    "self size",
  },
  ["op.nll_loss"] = {
    "input target weight size_average ignore_index reduce reduction",
    "self target weight reduction ignore_index",
  },
  ["op.nonzero"] = {
    "self",
  },
  ["op.norm"] = {
    "input p dim keepdim out dtype",
    "self p",
    "self p dim keepdim",
  },
  ["op.normal"] = {
    "mean std",
    "mean std size",
  },
  ["op.normalize"] = {
    "input p dim eps out",
  },
  ["op.one_hot"] = {
    "self num_classes",
  },
  ["op.ones"] = {
    "size",
  },
  ["op.ones_like"] = {
    "self",
  },
  ["op.outer"] = {
    "self vec2",
  },
  ["op.permute"] = {
    "self dims",
  },
  ["op.polar"] = {
    "abs angle",
  },
  ["op.pow"] = {
    "self exponent",
  },
  ["op.prod"] = {
    "self",
    "self dim keepdim",
  },
  ["op.rand"] = {
    "size",
  },
  ["op.rand_like"] = {
    "self",
  },
  ["op.randint"] = {
    "high size",
    "low high size",
  },
  ["op.randint_like"] = {
    "self high",
    "self low high",
  },
  ["op.randn"] = {
    "size",
  },
  ["op.randn_like"] = {
    "self",
  },
  ["op.random"] = {
    "self",
    "self from to",
    "self to",
  },
  ["op.randperm"] = {
    "n",
  },
  ["op.real"] = {
    "self",
  },
  ["op.reciprocal"] = {
    "self",
  },
  ["op.relu"] = {
    "self",
  },
  ["op.remainder"] = {
    "self other",
  },
  ["op.repeat_interleave"] = {
    "repeats",
    "self repeats dim",
  },
  ["op.reshape"] = {
    "self shape",
  },
  ["op.reshape_as"] = {
    "self other",
  },
  ["op.roll"] = {
    "self shifts dims",
  },
  ["op.round"] = {
    "self",
  },
  ["op.rsqrt"] = {
    "self",
  },
  ["op.scaled_dot_product_attention"] = {
    "query key value attn_mask dropout_p is_causal",
  },
  ["op.scatter"] = {
    "self dim index src",
    "self dim index value",
  },
  ["op.scatter_add"] = {
    "self dim index src",
  },
  ["op.select"] = {
    "self dim index",
  },
  ["op.sigmoid"] = {
    "self",
  },
  ["op.sign"] = {
    "self",
  },
  ["op.signbit"] = {
    "self",
  },
  ["op.silu"] = {
    "input inplace",
    "self",
  },
  ["op.sin"] = {
    "self",
  },
  ["op.sinh"] = {
    "self",
  },
  ["op.softmax"] = {
    "self dim dtype",
  },
  ["op.softplus"] = {
    "self beta threshold",
  },
  ["op.sort"] = {
    "self",
    "self dim descending",
    "self reverse",
  },
  ["op.split"] = {
    "self split_size dim",
    "self split_sizes dim",
    "tensor split_size_or_sections dim",
  },
  ["op.sqrt"] = {
    "self",
  },
  ["op.square"] = {
    "self",
  },
  ["op.squeeze"] = {
    "self",
    "self dim",
  },
  ["op.stack"] = {
    "tensors dim",
  },
  ["op.std"] = {
    "self dim",
    "self dim unbiased keepdim",
    "self unbiased",
  },
  ["op.sub"] = {
    "self other",
    "self other alpha",
  },
  ["op.sum"] = {
    "self",
    "self dim keepdim",
  },
  ["op.swapaxes"] = {
    "self axis0 axis1",
  },
  ["op.t"] = {
    "self",
  },
  ["op.tan"] = {
    "self",
  },
  ["op.tanh"] = {
    "self",
  },
  ["op.tile"] = {
    "self dims",
  },
  ["op.to"] = {
    "self",
    "self device dtype non_blocking copy",
    "self device dtype non_blocking copy memory_format",
    "self dtype non_blocking copy",
    "self dtype non_blocking copy memory_format",
    "self non_blocking copy",
    "self other non_blocking copy memory_format",
  },
  ["op.topk"] = {
    "self k dim largest sorted",
  },
  ["op.trace"] = {
    "self",
  },
  ["op.transpose"] = {
    "self dim0 dim1",
  },
  ["op.tril"] = {
    "self diagonal",
  },
  ["op.triu"] = {
    "self diagonal",
  },
  ["op.trunc"] = {
    "self",
  },
  ["op.unbind"] = {
    "self dim",
  },
  ["op.unflatten"] = {
    "self dim sizes",
  },
  ["op.unfold"] = {
    "input kernel_size dilation padding stride",
    "self dimension size step",
  },
  ["op.uniform"] = {
    "self from to",
  },
  ["op.unsqueeze"] = {
    "self dim",
  },
  ["op.var"] = {
    "self dim",
    "self dim unbiased keepdim",
    "self unbiased",
  },
  ["op.view"] = {
    "self dtype",
    "self size",
  },
  ["op.view_as"] = {
    "self other",
  },
  ["op.view_as_complex"] = {
    "self",
  },
  ["op.view_as_real"] = {
    "self",
  },
  ["op.where"] = {
    "condition",
    "condition self other",
  },
  ["op.zero_"] = {
    "self",
  },
  ["op.zeros"] = {
    "size",
  },
  ["op.zeros_like"] = {
    "self",
  },
  ["optim.Adam"] = {
    "params lr betas eps weight_decay amsgrad",
  },
  ["optim.AdamW"] = {
    "params lr betas eps weight_decay amsgrad",
  },
  ["optim.Optimizer"] = {
    "params defaults",
  },
  ["optim.RMSprop"] = {
    "params lr alpha eps weight_decay momentum centered capturable foreach maximize differentiable",
  },
  ["optim.SGD"] = {
    "params lr momentum dampening weight_decay nesterov",
  },
}
