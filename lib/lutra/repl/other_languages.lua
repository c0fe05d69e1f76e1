--- Advice for constructs of other languages, and their equivalents in Lua.

local other_languages = {}

--- Undefined globals of Python and of older versions of Lua: name -> advice.
other_languages.globals = {
  torch = "the library is lt: lt.zeros(2, 3)", np = "the library is lt: lt.zeros(2, 3)",
  numpy = "the library is lt: lt.zeros(2, 3)",
  None = "Lua writes nil for None", null = "Lua writes nil for null",
  True = "Lua writes true for True", False = "Lua writes false for False",
  len = "Lua writes #x for len(x)", range = "Lua writes for i = 1, n do ... end",
  enumerate = "Lua writes for i, x in ipairs(list) do ... end",
  str = "Lua writes tostring(x) for str(x)",
  int = "Lua writes x // 1 or math.tointeger(x) for int(x)",
  float = "Lua writes tonumber(x) for float(x)", list = "Lua writes {1, 2, 3} for a list",
  dict = "Lua writes {name = value} for a dict", tuple = "Lua writes {1, 2} for a tuple",
  isinstance = "Lua writes type(x) == \"table\", or lt.is_tensor(x)",
  sorted = "Lua writes table.sort(list), in place", input = "Lua writes io.read() for input()",
  open = "Lua writes io.open(path)", printf = "Lua writes io.write(string.format(...))",
  iter = "an iterator is a function: loader:iter()() is the first batch",
  zip = "Lua writes for i = 1, #a do ... a[i], b[i] ... end",
  sys = "the command-line arguments are in arg",
  this = "Lua writes self for this",
  cuda = "a device is a string: \"cuda\"; its functions are in lt.cuda",
  mps = "a device is a string: \"mps\"; its functions are in lt.mps",
  cpu = "a device is a string: \"cpu\"", meta = "a device is a string: \"meta\"",
  gpu = "a device is a string: \"cuda\"; lt.best_device() finds one",
  self = "self exists only in methods: function Net:forward(x), with a colon",
  unpack = "Lua 5.4 calls it table.unpack", loadstring = "Lua 5.4 calls it load",
  setfenv = "Lua 5.4 has the argument env of load instead",
  getfenv = "Lua 5.4 has the argument env of load instead",
  module = "a module is a file that returns a table",
  plt = "lt.plot.line(x, y) makes a plot; the prompt has :plot x",
}

--- Names directly before a string, as Python's string prefixes: name -> advice.
other_languages.prefixes = {
  f = "Lua writes (\"%d\"):format(x) for f\"{x}\"", r = "Lua writes [[text]] for r\"text\"",
  b = "strings hold any bytes: \"text\" for b\"text\"",
}

--- Blocks: else if, and statements after a return.
other_languages.else_if = "Lua writes elseif in one word; else if opens another block"
other_languages.after_return = "return must be the last statement of its block: do return end"

--- A line that starts with a bracket.
other_languages.goes_on = "the ( of the next line calls the value of this line: "
  .. "put a ; between them"

--- The same, where the program has not run.
other_languages.continues = "this ( calls the value at the end of the line before; "
  .. "put a ; between them"

--- Methods of lists, dicts and strings elsewhere: name -> advice.
other_languages.methods = {
  append = "Lua writes t[#t + 1] = x, or table.insert(t, x)",
  push = "Lua writes t[#t + 1] = x, or table.insert(t, x)",
  pop = "Lua writes table.remove(t)",
  extend = "Lua writes table.move(b, 1, #b, #a + 1, a)",
  keys = "Lua writes for key in pairs(t) do ... end",
  values = "Lua writes for _, value in pairs(t) do ... end",
  items = "Lua writes for key, value in pairs(t) do ... end",
  length = "Lua writes #t for t.length",
  strip = "Lua writes s:match \"^%s*(.-)%s*$\" for s.strip()",
  split = "Lua writes for word in s:gmatch \"%S+\" do ... end",
  join = "Lua writes table.concat(list, \", \")",
  replace = "Lua writes s:gsub(a, b), where a is a pattern",
  startswith = "Lua writes s:sub(1, #start) == start",
  to = "the tensor comes first: x:to \"cuda\"",
  cuda = "the tensor comes first: x:cuda()",
  type = "a device is a string: x.is_cuda, x.device == \"cpu\"",
}

--- Methods that tensors have in PyTorch but not here: name -> advice.
other_languages.tensor_methods = {
  numpy = "x:totable() gives a Lua table of the elements, x:item() a single number",
  get_device = "x.device is the device, a string: \"cpu\", \"cuda:0\"",
}

--- Lines that are not Lua: {a pattern of the line, without its strings and comments; advice}, the
-- most specific first.
other_languages.lines = {
  {"^%s*from%s+%S+%s+import", "Lua writes local name = require \"module\" for from ... import"},
  {"^%s*import%s", "Lua writes local name = require \"name\" for import name"},
  {"^%s*def%s", "Lua writes function name(x) ... end for def"},
  {"^%s*class%s", "a class of modules is local Net = nn.Module:extend \"Net\""},
  {"%f[%w_]lambda%f[^%w_]", "Lua writes function(x) return x end for lambda x: x"},
  {"%f[%w_]elif%f[^%w_]", "Lua writes elseif for elif"},
  {"^%s*for%s+.-%sin%s+range", "Lua writes for i = 1, n do ... end for a range"},
  {"^%s*for%s.*:%s*$", "Lua writes for ... do ... end"},
  {"^%s*if%s.*:%s*$", "Lua writes if ... then ... end"},
  {"%f[%w_]do%s*:[^:]", "Lua writes do without a colon"},
  {"%f[%w_]then%s*:[^:]", "Lua writes then without a colon"},
  {"^%s*else%s*:%s*$", "Lua writes else without a colon, and end after the block"},
  {"^%s*while%s.*:%s*$", "Lua writes while ... do ... end"},
  {"^%s*try%s*:?%s*$", "Lua writes local ok, result = pcall(f) for try"},
  {"^%s*except%f[^%w_]", "Lua writes local ok, result = pcall(f) for try"},
  {"^%s*raise%s", "Lua writes error(\"message\") for raise"},
  {"^%s*assert%s+[%w_]", "Lua writes assert(x == 1, \"message\")"},
  {"^%s*global%s", "a variable is global where nothing declares it local"},
  {"%f[%w_]function%f[^%w_][^%(]*%([^%)]*%)%s*{",
    "Lua writes function f(x) ... end, without braces"},
  {"%f[%w_]function%f[^%w_][^%(]*%([^%)]*%)%s*:",
    "Lua writes function f(x) ... end, without a colon"},
  {"^%s*if%s.*%)%s*{", "Lua writes if ... then ... end, without braces"},
  {"^%s*while%s.*%)%s*{", "Lua writes while ... do ... end, without braces"},
  {"^%s*:%l", "a line that begins with a colon is a command of the prompt: lutra -i"},
  {"^%s*with%s.*device", "scopes are functions: lt.with_device(\"meta\", nn.Linear, 3, 2)"},
  {"^%s*with%s.*[sS]tream", "scopes are functions: lt.cuda.with_stream(s, function() ... end)"},
  {"^%s*with%s", "scopes are functions: lt.no_grad(function() ... end)"},
  {"^%s*del%s", "Lua writes x = nil for del x"},
  {"%f[%w_.:]print%s+[%w_]", "Lua writes print(x) for print x"},
  {"^%s*let%s", "Lua writes local x = 1 for let x = 1"},
  {"^%s*var%s", "Lua writes local x = 1 for var x = 1"},
  {"^%s*const%s", "Lua writes local x <const> = 1 for const x = 1"},
  {"^%s*pass%s*$", "an empty block needs no statement"},
  {"=.*%sif%s.*%selse%s", "Lua writes c and a or b for a if c else b"},
  {"[%w_%)%]]%s+is%s", "Lua writes x == nil for x is None"},
  {":to%s+[cdm]%w%w", "a device is a string in quotes, x:to \"cuda\"; a variable is in "
    .. "parentheses, x:to(device)"},
  {"!=", "Lua writes ~= for !="}, {"<>", "Lua writes ~= for <>"},
  {"===", "Lua writes == for ==="}, {":=", "Lua writes x = 5 for x := 5"},
  {"[=%-]>", "Lua writes function(x) return x end; and >= for at least"},
  {"^%s*[%w_%.]+%s*:%s+%a[%w_%.%[%]]*%s*=", "Lua declares no types: local x = 3"},
  {"%f[%w_]%d+_%d", "Lua writes 1000000 or 1e6, without _"},
  {"&&", "Lua writes and for &&"},
  {"||", "Lua writes or for ||"},
  {"!%s*[%w_%(]", "Lua writes not x for !x"},
  {"%+%+", "Lua writes x = x + 1 for x++"},
  {"%*%*", "Lua writes x ^ y for x ** y"},
  {"([%+%-%*/%%|&%^]=)", "Lua writes x = x + 1 for x += 1"},
  {"%[.-%sfor%s.-%sin%s",
    "Lua fills a list in a loop: for i = 1, n do t[i] = ... end"},
  {"{%s*[%w_\"]+%s*:%s", "Lua writes {[1] = 2} for {1: 2}, {a = 2} for {\"a\": 2}"},
  {"%[[^%[%]{}]*:[^%[%]{}]*%]", "a range is x[{{1, 3}}] or x[\"1:3\"], both ends included"},
  {"[=%(,]%s*%[%s*[%w\"%]]", "Lua writes {1, 2} for [1, 2]"},
  {"[%w_%)%]]%[[^%[%]{}]*,[^%[%]{}]*%]",
    "an element is x[{1, 2}], a range x[\"1:3, 2\"]"},
  {"[%w_%)%]]%s*@%s*[%w_%(]", "Lua writes x:matmul(y) for x @ y"},
  {"%s#%s+%a", "a comment starts with -- in Lua"},
  {"^%s*#%s+%a", "a comment starts with -- in Lua"},
  {"^%s*//", "a comment starts with -- in Lua"},
  {"%?[^:]*:", "Lua writes c and a or b for c ? a : b"},
}

--- Commands of IPython, behind % or %%: name -> the command that replaces it, with the arguments
-- where it ends in a space; or advice.
other_languages.magics = {
  time = ":time ", timeit = ":timeit ", prun = ":prof ", run = ":run ", who = ":whos",
  whos = ":whos", who_ls = ":whos", reset = ":reset", cd = ":cd ", pwd = ":pwd", ls = "!ls ",
  ll = "!ls -l ", cat = "!cat ", mkdir = "!mkdir ", rm = "!rm ", cp = "!cp ", mv = "!mv ",
  man = "!man ", sx = "!", system = "!", sh = "!", bash = "!", script = "!", pdoc = ":doc ",
  pinfo = ":doc ", pinfo2 = ":source ", psource = ":source ", pfile = ":source ",
  lsmagic = ":help", magic = ":help", quickref = ":help", history = ":history ",
  hist = ":history ", save = ":save ", edit = ":edit ", debug = ":debug", config = ":set ",
  load_ext = "Lutra has no extensions of IPython", reload_ext = ":reload ",
  autoreload = ":reload NAME loads a module again", load = "open the file in the front end",
  matplotlib = "plots need no setting: lt.plot.line(x) makes one",
  pylab = "plots need no setting: lt.plot.line(x) makes one",
  env = "os.getenv(\"NAME\") is a variable of the environment",
  set_env = "set variables of the environment before the start",
  pip = "!luarocks install NAME installs a Lua module",
  conda = "!luarocks install NAME installs a Lua module",
  writefile = "io.open(path, \"w\"):write(text) writes a file",
  capture = "local function print(x) ... end keeps what is printed",
  html = "lt.display shows HTML, SVG and images",
  precision = ":print short", xmode = "errors always have a traceback",
  pdb = ":debug inspects the error of the last cell",
  colors = ":set colors ", store = ":keep FILE saves the variables, :load FILE restores them",
}

--- Returns advice about a line with a command of IPython, such as "%timeit f(x)", or nil.
function other_languages.magic(line)
  local name, arguments = line:match "^%s*%%%%?(%a[%w_]*)%s*(.-)%s*$"
  local advice = name and other_languages.magics[name]
  if not advice then return nil end
  if advice:sub(-1) == " " or advice == "!" then return (advice .. arguments):match "^(.-)%s*$" end
  return advice
end

local comparison = "== is one boolean; a:eq(b) compares the elements of tensors"

--- Messages of Lua, and of the library: {a pattern of the message, advice}.
other_languages.messages = {
  {'lt has no field "from_numpy"',
    "lt.load_npy(path) reads a .npy file, lt.tensor(t) copies a table"},
  {'lt.cuda has no field "device"', "scopes are functions: lt.cuda.with_device(1, f); "
    .. "lt.cuda.set_device(1) from there on"},
  {'lt.cuda has no field "stream"', "scopes are functions: lt.cuda.with_stream(s, f)"},
  {"^tensor: .*['\"]dtype['\"].* %-?%d",
    "put numbers in braces: lt.tensor{1, 2, 3}"},
  {"to 'next' %(table expected, got function%)", "an iterator is a function: net:parameters()() is "
    .. "the first value"},
  {"to 'for iterator' %(table expected, got function%)", "an iterator needs no pairs: "
    .. "for name, p in net:named_parameters() do"},
  {"attempt to index a function value$", "ipairs expects a list; an iterator needs no ipairs: "
    .. "for p in net:parameters() do"},
  {"attempt to get length of a function value", "an iterator has no length; count in a loop: "
    .. "for p in net:parameters() do"},
  {'nn has no field "DistributedDataParallel"', "lt.nn.parallel.DistributedDataParallel(model) "
    .. "after lt.distributed.init_process_group(); nn.DataParallel(model) in one process"},
  {"number expected, got tensor", "x:item() is the number of a tensor of one element"},
  {"attempt to concatenate a tensor value", "x:item() is the number of a tensor of one element, "
    .. "tostring(x) its string"},
  {"attempt to concatenate a Shape value", "tostring(x.shape) is its string"},
  {"attempt to perform arithmetic on a string value", "Lua writes a .. b to join strings"},
  {"attempt to add a 'string'", "Lua writes a .. b to join strings"},
  {"attempt to mod a 'string'", "Lua writes (\"%d\"):format(x) for \"%d\" % x"},
  {"attempt to call a table value %(for iterator",
    "Lua writes for key, value in pairs(t) do, of lists ipairs(t)"},
  {"attempt to call a Shape value %(field", "a shape is a field: x.shape, x.shape[1] or x:size(1)"},
  {"attempt to call a plot value", "lt.plot is a table of functions: lt.plot.line(losses)"},
  {"attempt to index a boolean value$", comparison},
  {"expected a tensor for argument '[%w_]+', got true$", comparison},
  {"expected a tensor for argument '[%w_]+', got false$", comparison},
  {"attempt to call a tensor value %(for iterator", "Lua writes for i = 1, #x do ... x[i] ... end"},
  {"attempt to call a .- value %(method '",
    "read a field with a dot, x.shape; call a method with a colon, x:sum()"},
  {"'then' expected near '='$", "Lua writes == to compare"},
  {" near 'in'$", "Lua writes t[x] ~= nil for x in t"},
  {"'}' expected .*near '[%w_\"']", "a comma or a } may be missing"},
  {"'%)' expected near '[%w_\"']", "a comma, an operator or a ) may be missing"},
  {"%)' expected near ','$", "Lua writes {1, 2} for (1, 2)"},
  {"syntax error near <eof>$", "a value alone is not a statement"},
  {"'then' expected near '{'", "Lua writes if ... then ... end, without braces"},
  {"'do' expected near '{'", "Lua writes while ... do ... end, without braces"},
  {"function arguments expected near",
    "read a field with a dot, x.shape; call a method with a colon, x:sum()"},
  {"%)' expected near '='", "put named arguments in braces: f{dim = 1} or f(x, {dim = 1})"},
}

return other_languages
