--- Help texts of functions in C that are not ops, and of tensors' fields, by name: arguments and
-- description. A test checks that the lists are complete.

local builtin = {}

--- Functions of lt (and lt.autograd): name -> {arguments, text}; or only the text, when the core
-- declares the arguments (core._signatures).
builtin.functions = {
  tensor =
    "Makes a tensor from a number or from nested tables of numbers; always copies. Integers "
      .. "give int64, floats the default dtype.",
  as_tensor = "Like lt.tensor, but returns a tensor of the right dtype and device without a copy.",
  frombuffer = "Returns a vector of the numbers in a string of bytes, from `offset` (in bytes) on: "
    .. "`count` of them, or all (-1). Always copies.",
  numel = "Returns the number of elements of x.",
  is_tensor = {"(x)", "Returns whether x is a tensor."},
  is_parameter = {"(x)", "Returns whether x is an nn.Parameter."},
  is_floating_point = "Returns whether the dtype of x is a float dtype.",
  is_complex = {"(x)", "Returns whether x is a complex tensor or a complex number."},
  device = {"(name)",
    "Returns the full name of a device: lt.device \"cuda\" is \"cuda:0\". Raises an error "
      .. "that lists the devices when there is none of that name."},
  device_properties =
    "Returns the properties of a device: name, total_memory, free_memory (bytes), "
      .. "multi_processor_count, major, minor, ..., emulated.",
  synchronize =
    "Blocks the host until a device has finished its queued work; without an argument, the "
      .. "current accelerator, if there is "
    .. "one.",
  get_default_device = "Returns the device on which new tensors are made.",
  set_default_device = "Sets the device on which new tensors are made.",
  get_fallback =
    "Returns whether ops without a kernel on their device run on the CPU. See "
      .. "lt.set_fallback.",
  set_fallback =
    "true: an op without a kernel on its device runs on the CPU; its operands are copied there "
      .. "and its results back, with one warning for each op. false (the default, unless the "
      .. "environment variable LUTRA_FALLBACK is 1): such an op raises an error.",
  get_default_dtype = "Returns the dtype of new float tensors.",
  set_default_dtype = "Sets the dtype of new float tensors; the default is \"float32\".",
  can_cast = "Returns whether values of dtype from_ can be written into a tensor of dtype to in "
    .. "place: not complex to real, not floats to integers, not numbers to bool.",
  promote_types = "Returns the dtype in which an op on both dtypes computes.",
  result_type = "Returns the dtype of the result of an op on two tensors or numbers.",
  get_num_threads = "Returns the number of CPU threads.",
  set_num_threads = "Sets the number of CPU threads.",
  memory_live = "Returns the bytes allocated by tensors on all devices.",
  clock = "Returns the seconds of a monotonic clock.",
  isatty = "Returns whether a file descriptor (1: stdout, 2: stderr) is a terminal.",
  terminal_width = "Returns the width of the terminal in columns, or nil without a terminal.",
  info =
    "Returns facts about the build and the machine, as lutra --info prints them: version, "
      .. "compiler, cpu, "
    .. "isa, threads, blas, devices.",
  ops = {"()",
    "Returns a list of all ops: {name, signature, doc, kind, variants, traits, params, results, "
    .. "has_gradient, composite, support}."},
  set_printoptions =
    "Sets how tensors are printed: precision (digits), threshold (elements from which a tensor "
      .. "is summarized), edgeitems (elements shown at each end), linewidth, sci_mode (scientific "
      .. "notation: true, false or \"auto\"). profile sets all of them: default, short, full, or "
      .. "summary (one line for a tensor).",
  get_printoptions = "Returns the options as a table for lt.set_printoptions.",
  manual_seed =
    "Seeds the default random generator of all devices; the same seed gives the same numbers.",
  seed = "Seeds the default generator from the entropy of the system; returns the seed.",
  initial_seed = "Returns the seed of the default generator.",
  get_rng_state = "Returns the state of the default generator as a tensor.",
  set_rng_state = "Restores a state of the default generator.",
  Generator =
    "Makes a separate random generator, for the argument `generator` of random ops. "
    .. "Methods: manual_seed(seed), seed(), initial_seed(), get_state(), set_state(state).",
  is_grad_enabled = "Returns whether ops are recorded for autograd.",
  set_grad_enabled = "Turns recording for autograd on or off: while a function f runs, or until it "
    .. "is turned on again.",
  is_inference_mode_enabled = "Returns whether the code runs inside lt.inference_mode.",
  load_idx = "Reads the tensor of an IDX file (MNIST), also if compressed with gzip.",
  load_npy = "Reads the tensor of a NumPy file (.npy).",
  save_npy = "Writes a tensor as a NumPy file (.npy).",
  ["autograd.backward"] = "Computes gradients of several tensors, as x:backward().",
}

--- Methods of tensors, in the same form.
builtin.methods = {
  backward =
    "Adds the gradient of x to the .grad of every leaf tensor. x has one element, or pass "
      .. "`gradient`. Frees the autograd graph unless retain_graph is true.",
  item = "Returns the only element as a Lua number or boolean. Synchronizes with the device.",
  totable = "Returns the elements as nested tables (a number for 0 dims). Synchronizes with the "
    .. "device.",
  tolist = "The same as totable.",
  size = "Returns the sizes as a table, or the size of one dimension (from 1; -1 is the last).",
  stride = "Returns the distance in elements between neighbours along each dimension.",
  numel = "Returns the number of elements.",
  nelement = "The same as numel.",
  dim = "Returns the number of dimensions; also x.ndim.",
  storage_offset = "Returns the offset of the first element in the storage, in elements.",
  is_contiguous = "Returns whether the elements are contiguous in memory, in row-major order.",
  element_size = "Returns the bytes of an element.",
  data_ptr = "Returns the address of the first element.",
  is_floating_point = "Returns whether the dtype is a float dtype.",
  cfloat = "x in complex64.",
  cdouble = "x in complex128.",
  is_complex = "Returns whether the dtype is complex.",
  is_pinned = "Returns whether the memory is pinned, so that copies to a GPU can be asynchronous.",
  pin_memory = "Returns a copy in pinned memory; x itself if it is pinned.",
  record_stream =
    "Marks x as used by a stream, so that its memory is not reused before the stream is done.",
  shares_storage = "Returns whether both tensors share a storage.",
  set_data = "Replaces values, shape and memory of x by those of another tensor; x stays the same "
    .. "object.",
  new_tensor = "lt.tensor(data) with the dtype and device of x.",
  type = {"(dtype = nil)", "The dtype of x; with a dtype x in it, as x:to(dtype)."},
  type_as = "x in the dtype and on the device of other.",
  float = "x in float32.", double = "x in float64.", half = "x in float16.",
  bfloat16 = "x in bfloat16.", int = "x in int32.", long = "x in int64.",
  short = "x in int16.", char = "x in int8.", byte = "x in uint8.",
  bool = "x in bool: true where it is not 0.",
  cpu = "x on the CPU; x itself if it is there.",
  cuda = "x on a CUDA device (default: the current one); x itself if it is there.",
  mps = "x on an Apple GPU; x itself if it is there.",
  to = {"(device = nil, dtype = nil, {non_blocking = false, copy = false})",
    "x on another device or in another dtype: x:to \"cuda\", x:to \"float64\", x:to(other), "
    .. "x:to{device = d, dtype = t}. x itself if nothing changes."},
  nonzero =
    "Returns the indices of the elements that are not 0, {n, ndim}; with as_tuple a list of one "
      .. "tensor for each dim.",
  register_hook =
    "Calls f(grad) when the gradient of x is computed; a value that f returns replaces it. "
      .. "Returns a handle with :remove().",
  register_post_accumulate_grad_hook = {"(hook)",
    "Calls hook(x) after x.grad of a leaf tensor has been accumulated. Returns a handle with "
      .. ":remove()."},
  requires_grad_ = "Sets whether x requires grad; returns x.",
  retain_grad = "Keeps .grad although x is not a leaf tensor.",
  detach_ = "Detaches x from the autograd graph; returns x.",
  free = "Frees the memory now. Afterwards only tostring(x) and x == y raise no error.",
  view = "A view of another shape on the same memory (one size may be -1), or of the same bytes in "
    .. "another dtype: x:view(\"int32\").",
  where = "x where the condition is true, else other: lt.where(condition, x, other).",
}

--- Fields of tensors: name -> text.
builtin.fields = {
  shape = "The sizes, a table that can be printed and compared: {2, 3}.",
  dtype = "The type of the elements, a string: \"float32\".",
  device = "The device of the elements, a string: \"cpu\", \"cuda:0\", \"meta\".",
  ndim = "The number of dimensions.",
  grad = "The gradient that backward() accumulated, or nil. Can be assigned.",
  requires_grad = "Whether autograd computes its gradient. Can be assigned on a leaf tensor.",
  is_leaf = "Whether it is a leaf tensor: not the result of a recorded op.",
  grad_fn = "The name of the recorded op that made it, or nil.",
  H = "The conjugate transpose of a matrix.",
  mH = "The conjugate transpose of the last two dims.",
  real = "The real parts, a view; x itself when it is real.",
  imag = "The imaginary parts of a complex tensor, a view.",
  is_cuda = "Whether it is on a CUDA device.",
  is_cpu = "Whether it is on the CPU.",
  is_mps = "Whether it is on an Apple GPU.",
  is_meta = "Whether it is on meta: with shape and dtype, without memory.",
  T = "The transpose: all dimensions in reverse, a view.",
  mT = "The last two dimensions swapped, a view.",
  data = "The same memory outside the autograd graph; assigning replaces the memory.",
  itemsize = "Bytes of an element.",
  nbytes = "Bytes of all elements.",
}

--- Values of lt that are not functions: name -> text.
builtin.values = {
  pi = "The number pi.",
  e = "The base of natural logarithms.",
  inf = "Infinity.",
  nan = "Not a number.",
  newaxis = "In an index, a new dimension of size 1: x[{lt.newaxis, {}}].",
}

return builtin
