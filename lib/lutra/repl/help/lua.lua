--- Help texts of Lua itself: its keywords and its standard library, one line each, from the
-- reference manual, whose section is named.

local lua = {}

--- Keywords: name -> {syntax, description}.
lua.keywords = {
  ["and"] = {"a and b", "a if it is false or nil, else b. b is evaluated only then."},
  ["break"] = {"break", "Leaves the innermost loop."},
  ["do"] = {"do ... end", "A block: its local variables end with it."},
  ["else"] = {"if c then ... else ... end", "Runs when no condition before it is true."},
  ["elseif"] = {"if a then ... elseif b then ... end",
    "Tests another condition when those before it are false."},
  ["end"] = {"end", "Closes do, then, else, function and the loops for and while."},
  ["false"] = {"false",
    "With nil, the only false value of a condition: 0 and \"\" count as true."},
  ["for"] = {"for i = first, last, step do ... end\nfor key, value in pairs(t) do ... end",
    "Counts from first to last, both included; or calls an iterator until it returns nil."},
  ["function"] = {"function name(a, b, ...) ... end\nlocal f = function(a) ... end",
    "A function. With a colon, function t:name(), its first argument is self."},
  ["goto"] = {"goto name ... ::name::", "Continues at a label of this or an enclosing block."},
  ["if"] = {"if c then ... elseif d then ... else ... end",
    "Runs the first block whose condition is true."},
  ["in"] = {"for name in iterator do ... end",
    "Separates the variables of a for from its iterator."},
  ["local"] = {"local a, b = 1, 2\nlocal x <const> = 3\nlocal f <close> = io.open(path)",
    "Variables of this block. <const> may not be assigned; <close> is closed at the end of the "
      .. "block. At the prompt they stay defined in later cells."},
  ["nil"] = {"nil", "No value. A field that is nil does not exist."},
  ["not"] = {"not a", "true for false and nil, else false."},
  ["or"] = {"a or b", "a if it is neither false nor nil, else b."},
  ["repeat"] = {"repeat ... until c",
    "Runs the block until the condition, which sees its locals, is true."},
  ["return"] = {"return a, b", "Returns from the function. Must be the last statement of a block."},
  ["then"] = {"if c then ... end", "Separates a condition from its block."},
  ["true"] = {"true", "The boolean value true."},
  ["until"] = {"repeat ... until c", "The condition that ends a repeat."},
  ["while"] = {"while c do ... end", "Runs the block as long as the condition is true."},
}

--- Functions and values: name -> {arguments, or "" for a value, description}.
lua.names = {
  assert = {"(v, message)",
    "v and the other arguments if v is neither false nor nil, else an error."},
  collectgarbage = {"(what = \"collect\", ...)",
    "Controls the collector: \"collect\", \"count\" (KiB), \"step\", \"stop\", \"restart\"."},
  dofile = {"(path)", "Runs a file; returns what it returns."},
  error = {"(value, level = 1)",
    "Raises an error. Level 1 names the line that calls error, 2 the line that called that "
    .. "function, 0 none."},
  getmetatable = {"(x)", "The metatable of x (or its field __metatable), or nil."},
  ipairs = {"(t)", "For a loop over t[1], t[2], ... up to the first nil."},
  load = {"(text, name, mode, env)",
    "Compiles a string (or the pieces that a function returns) to a function; nil and a message on "
      .. "failure. Does not run it."},
  loadfile = {"(path, mode, env)", "Like load, for a file."},
  next = {"(t, key)",
    "The field after key (nil: the first), as key and value; nil after the last."},
  pairs = {"(t)", "For a loop over all fields of t, in no order."},
  pcall = {"(f, ...)", "Calls f; true and its results, or false and the error."},
  print = {"(...)", "Writes its arguments with tabs between and a newline."},
  rawequal = {"(a, b)", "Whether both are the same object, without __eq."},
  rawget = {"(t, key)", "t[key] without __index."},
  rawlen = {"(t)", "The length of a table or string without __len."},
  rawset = {"(t, key, value)", "t[key] = value without __newindex; returns t."},
  require = {"(name)", "The module of that name, loaded at the first call."},
  select = {"(n, ...)",
    "The arguments from the n-th on; select(\"#\", ...) is their number."},
  setmetatable = {"(t, meta)", "Gives a table its metatable; returns t."},
  tonumber = {"(x, base)", "x as a number, or nil if that is not possible."},
  tostring = {"(x)", "x as a string."},
  type = {"(x)",
    "\"nil\", \"number\", \"string\", \"boolean\", \"table\", \"function\", \"thread\" or "
    .. "\"userdata\"."},
  warn = {"(text, ...)", "Writes a warning to stderr, if warnings are on (\"@on\", \"@off\")."},
  xpcall = {"(f, handler, ...)",
    "Like pcall; the handler gets the error before the stack is unwound."},
  _G = {"", "The table of global variables."},
  _VERSION = {"", "The version of Lua."},

  ["string.byte"] = {"(s, i = 1, j = i)", "The codes of bytes i to j."},
  ["string.char"] = {"(...)", "The string of these codes."},
  ["string.dump"] = {"(f, strip)", "A function's compiled code as a string."},
  ["string.find"] = {"(s, pattern, init = 1, plain = false)",
    "Start and end index of the first match, then its captures; nil without a match."},
  ["string.format"] = {"(format, ...)", "A string with values in place of %d %s %q %g %5.2f ..."},
  ["string.gmatch"] = {"(s, pattern)", "For a loop over all matches, or their captures."},
  ["string.gsub"] = {"(s, pattern, by, n)",
    "s with the matches replaced by a string (%1: a capture), the field of a table or the result "
      .. "of a function; and the number of matches."},
  ["string.len"] = {"(s)", "Bytes of s; also #s."},
  ["string.lower"] = {"(s)", "s in lower case."},
  ["string.match"] = {"(s, pattern, init = 1)",
    "The captures of the first match (the match itself when it has none), or nil."},
  ["string.pack"] = {"(format, ...)", "The values as bytes, by a format: \"<i4\" \"z\" \"d\" ..."},
  ["string.packsize"] = {"(format)", "Bytes that string.pack makes."},
  ["string.rep"] = {"(s, n, between = \"\")", "s n times."},
  ["string.reverse"] = {"(s)", "The bytes from the last to the first."},
  ["string.sub"] = {"(s, i, j = -1)", "Bytes i to j, both included; -1 is the last."},
  ["string.unpack"] = {"(format, s, at = 1)", "Values from bytes, and the index after them."},
  ["string.upper"] = {"(s)", "s in upper case."},

  ["table.concat"] = {"(list, between = \"\", i = 1, j = #list)", "The strings of a list as one."},
  ["table.insert"] = {"(list, position, value)",
    "Inserts a value at an index, or with two arguments at the end."},
  ["table.move"] = {"(a, first, last, to, b = a)", "Copies a[first..last] to b[to..]; returns b."},
  ["table.pack"] = {"(...)", "A table of the arguments, with n = their number."},
  ["table.remove"] = {"(list, position = #list)", "Removes a value and returns it."},
  ["table.sort"] = {"(list, less)", "Sorts in place; less(a, b) says whether a comes before b."},
  ["table.unpack"] = {"(list, i = 1, j = #list)", "The values of a list as several."},

  ["math.abs"] = {"(x)", "|x|, an integer for an integer."},
  ["math.acos"] = {"(x)", "Inverse cosine in radians."},
  ["math.asin"] = {"(x)", "Inverse sine in radians."},
  ["math.atan"] = {"(y, x = 1)", "The angle of the point (x, y)."},
  ["math.ceil"] = {"(x)", "The smallest integer >= x."},
  ["math.cos"] = {"(x)", "Cosine of radians."},
  ["math.deg"] = {"(x)", "Radians as degrees."},
  ["math.exp"] = {"(x)", "e^x."},
  ["math.floor"] = {"(x)", "The largest integer <= x."},
  ["math.fmod"] = {"(x, y)", "The remainder of division rounded towards 0."},
  ["math.huge"] = {"", "Infinity."},
  ["math.log"] = {"(x, base = e)", "Logarithm."},
  ["math.max"] = {"(x, ...)", "The largest argument."},
  ["math.maxinteger"] = {"", "The largest integer, 2^63 - 1."},
  ["math.min"] = {"(x, ...)", "The smallest argument."},
  ["math.mininteger"] = {"", "The smallest integer, -2^63."},
  ["math.modf"] = {"(x)", "The integral part and the fraction."},
  ["math.pi"] = {"", "The number pi."},
  ["math.rad"] = {"(x)", "Degrees as radians."},
  ["math.random"] = {"(m, n)", "A float in [0, 1); or an integer from 1 to m, or from m to n."},
  ["math.randomseed"] = {"(seed)", "Seeds math.random; lt.manual_seed is for tensors."},
  ["math.sin"] = {"(x)", "Sine of radians."},
  ["math.sqrt"] = {"(x)", "Square root."},
  ["math.tan"] = {"(x)", "Tangent of radians."},
  ["math.tointeger"] = {"(x)", "x as an integer, or nil if it has no integer value."},
  ["math.type"] = {"(x)", "\"integer\", \"float\", or nil if x is not a number."},
  ["math.ult"] = {"(a, b)", "a < b as unsigned integers."},

  ["math.atan2"] = {"(y, x)", "The same as math.atan(y, x). Of older Lua; not in every build."},
  ["math.cosh"] = {"(x)", "Hyperbolic cosine. Of older Lua; not in every build."},
  ["math.frexp"] = {"(x)", "m and e with x = m 2^e, m in [0.5, 1). Of older Lua."},
  ["math.ldexp"] = {"(m, e)", "m 2^e. Of older Lua; not in every build."},
  ["math.log10"] = {"(x)", "Logarithm to base 10. Of older Lua; math.log(x, 10) is in every one."},
  ["math.pow"] = {"(x, y)", "x^y. Of older Lua; not in every build."},
  ["math.sinh"] = {"(x)", "Hyperbolic sine. Of older Lua; not in every build."},
  ["math.tanh"] = {"(x)", "Hyperbolic tangent. Of older Lua; not in every build."},

  ["io.close"] = {"(file)", "Closes a file, or the default output."},
  ["io.flush"] = {"()", "Flushes the buffer of the default output."},
  ["io.input"] = {"(file)", "Sets or returns the default input."},
  ["io.lines"] = {"(path, ...)",
    "For a loop over the lines of a file, which is closed at its end."},
  ["io.open"] = {"(path, mode = \"r\")",
    "A file, or nil and a message. Modes: r w a r+ w+ a+, with b for bytes."},
  ["io.output"] = {"(file)", "Sets or returns the default output."},
  ["io.popen"] = {"(command, mode = \"r\")",
    "A file that is the output (r) or input (w) of a shell command."},
  ["io.read"] = {"(...)",
    "Reads from the default input: \"l\" a line, \"n\" a number, \"a\" everything, or a count of "
    .. "bytes."},
  ["io.stderr"] = {"", "The file for errors."},
  ["io.stdin"] = {"", "The file of standard input."},
  ["io.stdout"] = {"", "The file of standard output."},
  ["io.tmpfile"] = {"()", "A temporary file."},
  ["io.type"] = {"(x)", "\"file\", \"closed file\", or nil if x is not a file."},
  ["io.write"] = {"(...)", "Writes strings and numbers to the default output."},

  ["os.clock"] = {"()", "Seconds of CPU time that the program used."},
  ["os.date"] = {"(format, time)", "A time as a string, or as a table for \"*t\"."},
  ["os.difftime"] = {"(later, earlier)", "Seconds between two times."},
  ["os.execute"] = {"(command)",
    "Runs a shell command: true or nil, \"exit\" or \"signal\", and the number."},
  ["os.exit"] = {"(code = true, close = false)", "Ends the program."},
  ["os.getenv"] = {"(name)", "An environment variable, or nil."},
  ["os.remove"] = {"(path)", "Deletes a file or an empty folder; nil and a message on failure."},
  ["os.rename"] = {"(old, new)", "Renames a file; nil and a message on failure."},
  ["os.setlocale"] = {"(locale, category)", "Sets or returns the locale."},
  ["os.time"] = {"(t)", "Now, or the time of a table, in seconds since 1970."},
  ["os.tmpname"] = {"()", "A name for a temporary file."},

  ["coroutine.close"] = {"(co)",
    "Closes a suspended or dead coroutine and its pending <close> variables."},
  ["coroutine.create"] = {"(f)", "A coroutine that will run f."},
  ["coroutine.isyieldable"] = {"(co)", "Whether it can yield."},
  ["coroutine.resume"] = {"(co, ...)",
    "Starts or resumes it; true and what it yields or returns, or false and the error."},
  ["coroutine.running"] = {"()", "The running coroutine, and whether it is the main one."},
  ["coroutine.status"] = {"(co)", "\"running\", \"suspended\", \"normal\" or \"dead\"."},
  ["coroutine.wrap"] = {"(f)", "A function that resumes a new coroutine and propagates errors."},
  ["coroutine.yield"] = {"(...)", "Suspends the coroutine; resume returns the arguments."},

  ["utf8.char"] = {"(...)", "The string of these code points."},
  ["utf8.charpattern"] = {"", "A pattern that matches one character."},
  ["utf8.codepoint"] = {"(s, i = 1, j = i)",
    "The code points of the characters that start in bytes i to j."},
  ["utf8.codes"] = {"(s)", "For a loop over byte indices and code points."},
  ["utf8.len"] = {"(s, i = 1, j = -1)",
    "The number of characters; nil and a byte index if it is not valid UTF-8."},
  ["utf8.offset"] = {"(s, n, i)", "The byte at which the n-th character starts."},

  ["debug.debug"] = {"()", "A minimal prompt of Lua; :debug is better."},
  ["debug.gethook"] = {"(thread)", "The hook: function, mask and count."},
  ["debug.getinfo"] = {"(thread, f, what)", "Facts about a function or a level of the stack."},
  ["debug.getlocal"] = {"(thread, f, i)", "Name and value of a local variable."},
  ["debug.getmetatable"] = {"(x)", "The metatable, without __metatable."},
  ["debug.getregistry"] = {"()", "The registry."},
  ["debug.getupvalue"] = {"(f, i)", "Name and value of an upvalue."},
  ["debug.getuservalue"] = {"(u, n = 1)", "A user value of a userdata."},
  ["debug.sethook"] = {"(thread, hook, mask, count)",
    "Calls hook at calls (c), returns (r), lines (l) or every count instructions."},
  ["debug.setlocal"] = {"(thread, level, i, value)", "Assigns a local variable."},
  ["debug.setmetatable"] = {"(x, meta)", "Sets the metatable of any value; returns x."},
  ["debug.setupvalue"] = {"(f, i, value)", "Assigns an upvalue."},
  ["debug.setuservalue"] = {"(u, value, n = 1)", "Sets a user value of a userdata."},
  ["debug.setcstacklimit"] = {"(limit)", "Has no effect."},
  ["debug.traceback"] = {"(thread, message, level)", "The call stack as a string."},
  ["debug.upvalueid"] = {"(f, i)", "An identifier of an upvalue, equal for a shared variable."},
  ["debug.upvaluejoin"] = {"(f, i, g, j)", "Makes upvalue i of f refer to upvalue j of g."},

  ["package.config"] = {"", "The separators of paths."},
  ["package.cpath"] = {"", "Patterns by which require finds C modules."},
  ["package.loaded"] = {"", "The modules that are loaded, by name."},
  ["package.loadlib"] = {"(path, name)", "A function of a shared library."},
  ["package.path"] = {"", "Patterns by which require finds Lua modules."},
  ["package.preload"] = {"", "Loaders that require asks first, by name."},
  ["package.searchers"] = {"", "The functions by which require finds loaders."},
  ["package.searchpath"] = {"(name, path, sep, rep)",
    "The file that a pattern finds, or nil and the paths that were tried."},
}

--- The standard libraries: name -> text.
lua.libraries = {
  string = "Strings: bytes, patterns, formats. Its functions are methods too: s:upper().",
  table = "Lists.", math = "Numbers.", io = "Files.", os = "Time, files, the environment.",
  coroutine = "Coroutines: functions that can suspend.", utf8 = "Strings of characters.",
  debug = "Inspection of running code.", package = "How require finds modules.",
}

--- Methods of files: name -> {arguments, text}.
lua.file_methods = {
  close = {"()", "Closes it."}, flush = {"()", "Flushes its buffer."},
  lines = {"(...)", "For a loop over its lines."},
  read = {"(...)",
    "\"l\" a line, \"n\" a number, \"a\" everything, or a count of bytes; nil at the end."},
  seek = {"(from = \"cur\", offset = 0)",
    "Sets and returns the file position: from \"set\", \"cur\" or \"end\"."},
  setvbuf = {"(mode, size)", "\"no\", \"full\" or \"line\" buffering."},
  write = {"(...)", "Writes strings and numbers; returns the file."},
}

--- Returns the row of a function (or table) of the standard library, and its name; nil for any
-- other value.
function lua.find(value)
  for name, row in pairs(lua.names) do
    local library, field = name:match "^(%w+)%.(%w+)$"
    local t = library and package.loaded[library] or _G
    if row[1] ~= "" and type(t) == "table" and rawget(t, field or name) == value then
      return row, name
    end
  end
  local methods = debug.getmetatable(io.stdout).__index
  for name, row in pairs(lua.file_methods) do
    if methods[name] == value then return row, "file:" .. name end
  end
end

return lua
