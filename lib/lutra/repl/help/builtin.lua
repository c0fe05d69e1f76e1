--- What help says about the functions that are written in C and are no ops, and about the fields
-- of tensors: by name, how it is called and what it does. A test holds the lists complete.

local builtin = {}

--- Functions of lt (and lt.autograd): name -> {arguments, text}; or only the text, where the core
-- knows the arguments (core._signatures).
builtin.functions = {
  tensor =
    "A tensor of a number, or of numbers in nested tables: always a copy. Whole numbers make "
    .. "int64, others the default dtype.",
  as_tensor = "As lt.tensor, but a tensor that fits already is given back as it is.",
  numel = "How many elements x has.",
  is_tensor = {"(x)", "Is x a tensor?"},
  is_parameter = {"(x)", "Is x an nn.Parameter?"},
  is_floating_point = "Is x's dtype a float?",
  is_complex = {"(x)", "Is x a complex tensor or a complex number?"},
  device = {"(name)",
    "The full name of a device: lt.device \"cuda\" is \"cuda:0\". An error names the devices "
    .. "here when there is none of that name."},
  device_properties =
    "What is known of a device: name, total_memory, free_memory (bytes), multi_processor_count, "
    .. "major, minor, ..., emulated.",
  synchronize =
    "Waits until a device has done its work; without an argument the accelerator, if there is "
    .. "one.",
  get_default_device = "The device of new tensors.",
  set_default_device = "Makes new tensors on that device.",
  get_fallback =
    "May an op run on the CPU when its device has no kernel for it? See lt.set_fallback.",
  set_fallback =
    "true: an op that its device has no kernel for runs on the CPU: its operands are copied there "
    .. "and its results back, with one warning for each op. false: it is an error, as at the start "
    .. "unless LUTRA_FALLBACK is 1 in the environment.",
  get_default_dtype = "The dtype of new float tensors.",
  set_default_dtype = "Sets the dtype of new float tensors: \"float32\" at the start.",
  promote_types = "The dtype that an op on both computes in.",
  result_type = "The dtype of an op's result on two tensors or numbers.",
  get_num_threads = "How many threads the CPU's loops use.",
  set_num_threads = "Sets how many threads the CPU's loops use.",
  memory_live = "Bytes that tensors hold, over all devices.",
  clock = "Seconds of a clock that never goes back.",
  isatty = "Is that file descriptor (1: stdout, 2: stderr) a terminal?",
  terminal_width = "Columns of the terminal, or nil when it is none.",
  info =
    "Facts about this build and machine, as lutra --info prints them: version, compiler, cpu, "
    .. "isa, threads, blas, devices.",
  ops = {"()",
    "Every op as data: a list of {name, signature, doc, kind, variants, traits, params, results, "
    .. "has_gradient, composite, support}."},
  set_printoptions =
    "How tensors print: digits, from how many elements on only the ends are shown and how many "
    .. "at each end, the width of a line, scientific notation always (true), never (false) or as "
    .. "the numbers ask (\"auto\"). A profile sets them all first: default, short, full, or "
    .. "summary, one line a tensor.",
  get_printoptions = "The options in the form that lt.set_printoptions takes.",
  manual_seed =
    "Starts the default generator of random numbers, on all devices: the same seed gives the "
    .. "same numbers.",
  seed = "Starts the default generator from the system's entropy; returns the seed.",
  initial_seed = "The seed that the default generator was started with.",
  get_rng_state = "The state of the default generator, a tensor.",
  set_rng_state = "Puts the default generator back into a state.",
  Generator =
    "A generator of random numbers of its own, for the argument `generator` of random ops. "
    .. "Methods: manual_seed(seed), seed(), initial_seed(), get_state(), set_state(state).",
  is_grad_enabled = "Is recorded what gradients need?",
  set_grad_enabled = "Turns recording on or off; returns what it was. lt.no_grad is safer.",
  is_inference_mode_enabled = "Does an lt.inference_mode run?",
  load_idx = "Reads the tensor of an IDX file (MNIST), packed with gzip or not.",
  load_npy = "Reads the tensor of a NumPy file (.npy).",
  save_npy = "Writes a tensor as a NumPy file (.npy).",
  ["autograd.grad"] =
    "Gradients of sum(outputs * grad_outputs) with respect to inputs, without touching any "
    .. ".grad: a tensor for a tensor, a list for a list.",
  ["autograd.backward"] = "x:backward() for several tensors.",
}

--- Methods of tensors, in the same form.
builtin.methods = {
  backward =
    "Adds to the .grad of every leaf the derivative of x, which is a single number (or give its "
    .. "gradient). Runs once, unless retain_graph.",
  item = "The one element as a Lua number or boolean. Waits for the device.",
  totable = "The elements as nested tables (a number for 0 dims). Waits for the device.",
  tolist = "The same as totable.",
  size = "The sizes as a table, or the size of one dimension (from 1; -1 is the last).",
  stride = "How far apart neighbours along each dimension lie, in elements.",
  numel = "How many elements there are.",
  nelement = "The same as numel.",
  dim = "How many dimensions there are; also x.ndim.",
  storage_offset = "Where the first element lies in its memory, in elements.",
  is_contiguous = "Do the elements lie in order, without gaps?",
  element_size = "Bytes of an element.",
  data_ptr = "The address of the first element.",
  is_floating_point = "Is the dtype a float?",
  cfloat = "In complex64.",
  cdouble = "In complex128.",
  is_complex = "Is the dtype complex?",
  is_pinned = "Is the memory pinned, so that a GPU copies it while others work?",
  pin_memory = "A copy in pinned memory; x itself where it is that already.",
  record_stream =
    "Says that a stream uses x, so that its memory is not given away before that is done.",
  shares_storage = "Do both lie in the same memory?",
  set_data = "Gives x the values, shape and memory of another tensor; x stays the same object.",
  new_tensor = "lt.tensor(data) of x's dtype and device.",
  type_as = "x in the dtype and on the device of other.",
  float = "x in float32.", double = "x in float64.", half = "x in float16.",
  bfloat16 = "x in bfloat16.", int = "x in int32.", long = "x in int64.",
  short = "x in int16.", char = "x in int8.", byte = "x in uint8.",
  bool = "x in bool: is it not 0?",
  cpu = "x in the host's memory; x itself when it is there.",
  cuda = "x on a CUDA device (the current one unless given); x itself when it is there.",
  mps = "x on Apple's GPU; x itself when it is there.",
  to = {"(device = nil, dtype = nil, {non_blocking = false, copy = false})",
    "x on another device or in another dtype: x:to \"cuda\", x:to \"float64\", x:to(other), "
    .. "x:to{device = d, dtype = t}. x itself when it is that already."},
  nonzero =
    "Positions of the elements that are not 0: {n, ndim}; with as_tuple a list of one tensor for "
    .. "each dim.",
  register_hook =
    "Calls f(grad) when x's gradient is known; what f returns, if anything, replaces it. Returns "
    .. "a handle with :remove().",
  requires_grad_ = "Asks for x's gradient, or not; returns x.",
  retain_grad = "Keeps .grad although x is no leaf.",
  detach_ = "Takes x out of the graph that made it; returns x.",
  free = "Frees the memory now. Afterwards only tostring(x) and x == y are no errors.",
  ["repeat"] = {"(...)", "The same as tile: x[\"repeat\"](x, 2, 2)."},
}

--- Fields of tensors: name -> text.
builtin.fields = {
  shape = "The sizes, a table that prints and compares: {2, 3}.",
  dtype = "The type of the elements, a string: \"float32\".",
  device = "Where the elements are, a string: \"cpu\", \"cuda:0\", \"meta\".",
  ndim = "How many dimensions there are.",
  grad = "The gradient that backward() added up, or nil. May be assigned.",
  requires_grad = "Is a gradient wanted? May be assigned on a leaf.",
  is_leaf = "Was it made by the user, not by an op that is recorded?",
  grad_fn = "The name of the op that made it, if that is recorded, else nil.",
  real = "The real parts, a view; x itself when it is real.",
  imag = "The imaginary parts of a complex tensor, a view.",
  is_cuda = "Is it on a CUDA device?",
  is_cpu = "Is it in the host's memory?",
  is_mps = "Is it on Apple's GPU?",
  is_meta = "Has it only shape and dtype, no memory?",
  T = "The transpose: all dimensions in reverse, a view.",
  mT = "The last two dimensions swapped, a view.",
  data = "The same memory outside the graph; assigning gives it other memory.",
  itemsize = "Bytes of an element.",
  nbytes = "Bytes of all elements.",
}

--- Values of lt that are no functions: name -> text.
builtin.values = {
  pi = "The circle's circumference by its diameter.",
  e = "The base of natural logarithms.",
  inf = "Infinity.",
  nan = "Not a number.",
  newaxis = "In an index, a new dimension of size 1: x[{lt.newaxis, {}}].",
}

return builtin
