-- Beginners' errors about devices: each message names what was expected, what it got and the fix.

local devices = require "device_support"
local support = require "program_support"
local has, has_not = support.has, support.has_not

-- Types each input at one prompt. Returns what was printed for each, without its traceback.
local function typed(inputs, arguments)
  local result = support.shell(("cd /tmp && HOME=/nonexistent %s -i --no-init %s 2>&1"):format(
    support.quote(support.program), arguments or ""), table.concat(inputs, "\n") .. "\n")
  local list, at = {}, 1
  for i = 1, #inputs do
    local from = select(2, result.out:find("%[%d+%]> ", at))
    local last = result.out:find("%[%d+%]> ", from + 1) or #result.out
    list[i] = result.out:sub(from + 1, last - 1):gsub("\nTraceback.*", "")
    at = last
  end
  return list
end

-- rows: {input, texts that are said...}; an input without texts prepares.
local function check(rows, arguments)
  local inputs = {}
  for i, row in ipairs(rows) do inputs[i] = row[1] end
  for i, said in ipairs(typed(inputs, arguments)) do
    for k = 2, #rows[i] do has(rows[i][1] .. "\n" .. said, rows[i][k]) end
    if #rows[i] == 1 then has_not(rows[i][1] .. "\n" .. said, "error:") end
  end
end

describe("at the prompt a beginner", function()
  it("a misspelt device: the error lists the devices and shows the syntax", function()
    check({
      {"x = lt.ones(3)"},
      {'x:to("gpu")', 'to: expected an available device or a dtype, got "gpu". Available devices: '
        .. 'cpu, cuda:0, cuda:1, meta'},
      {'x:to "cuda:7"',
        'to: expected an available device, got "cuda:7": there are 2 of them, counted from 0'},
      {"x:to cuda", "function arguments expected near 'cuda'", 'in quotes, x:to "cuda"'},
      {"x:to(cuda)", "to: expected a device, a dtype or a tensor, got nil", "cuda is not defined",
        'a device is a string: "cuda"; its functions are in lt.cuda'},
      {"cuda.is_available()", "its functions are in lt.cuda"},
      {"x:to(cpu)", 'cpu is not defined; a device is a string: "cpu"'},
      {"x:to(true)", 'to: expected a device, a dtype or a tensor, got true'},
      {"x:to()", 'to: expected a device, a dtype or a tensor, got no value'},
      {'x.device = "cuda"', 'device: cannot assign this field of a tensor\nhint: x = x:to(device)'},
      {'lt.device("cuda:0"):to(x)', "(method 'to')", 'the tensor comes first: x:to "cuda"'},
      {'lt.zeros(2, device = "cuda")', "put named arguments in braces"},
      {"x:numpy()", 'no field or method "numpy"', "x:totable()"},
      {"nn.Linear(3, 2):to(cuda)", "to: expected a device, a dtype or a tensor, got nil",
        "cuda is not defined"},
      {'lt.zeros(2, "cuda:1")', 'expected a dtype, got the device "cuda:1"', '{device = "cuda:1"}'},
      {'lt.with_device("gpu", print)',
        'with_device: expected an available device, got "gpu". Available devices: '},
      {'nn.Linear(3, 2):to_empty "gpu"',
        'to_empty: expected an available device, got "gpu". Available devices: '},
      {'data.DataLoader(data.TensorDataset(x), {device = "gpu"})',
        'DataLoader: expected an available device, got "gpu". Available devices: '},
      {"x:cuda()"},
      {"cuda_x = _"},
      {"cuda_x + x", 'cuda_x is on "cuda:0", x is on "cpu"\nhint: x:to(cuda_x.device)'},
      {'nn.Linear(3, 2):to("gpu")',
        'to: expected an available device or a dtype, got "gpu". Available devices: cpu, cuda:0'},
    }, "--emulate cuda:2")
  end)

  it("Python's names: the hint gives Lutra's", function()
    check {
      {"net, x = nn.Linear(3, 2), lt.ones(3)"},
      {"next(net:parameters())", "net:parameters()() is the first"},
      {"for i, p in ipairs(net:parameters()) do end", "for p in net:parameters() do"},
      {"for name in pairs(net:named_parameters()) do end", "for name, p in net:named_parameters()"},
      {"#net:parameters()", "an iterator has no length"},
      {'with lt.device("meta") do', 'lt.with_device("meta", nn.Linear, 3, 2)'},
      {'lt.with_device("meta", net)', 'with_device: expected a function for argument \'f\', got a '
        .. 'module that exists: Linear\nhint: lt.with_device("meta", nn.Linear, 3, 2)'},
      {'lt.with_device("meta", nn.Linear, 3, 2)'},
      {'lt.with_device("cpu", net, x)'},
      {"with lt.cuda.stream(s):", "lt.cuda.with_stream(s, function() ... end)"},
      {"lt.cuda.stream(s)", 'no field "stream"', "hint: scopes are functions: lt.cuda.with_stream"},
      {"lt.cuda.device(1)", "lt.cuda.with_device(1, f)"},
      {"lt.utils.tensorbord.SummaryWriter(x)", 'lt.utils has no field "tensorbord"'},
      {"x.device:type()", "x.is_cuda"},
      {"x:get_device()", "x.device is the device"},
      {'("%.2f"):format(x:sum())', "number expected, got tensor", "hint: x:item() is the number"},
      {"for i = 1, x:sum() do end", "hint: x:item() is the number"},
      {'"loss " .. x:sum()', "concatenate a tensor value", "tostring(x) its string"},
      {'"sizes " .. x.shape', "concatenate a Shape value", "tostring(x.shape) is its string"},
      {"lt.tensor(1, 2, 3)", "put numbers in braces: lt.tensor{1, 2, 3}"},
      {"Net = nn.Module:extend 'Net'; function Net:__init(n) end; Net(3)",
        "Net: expected a method init, got __init"},
    }
  end)

  it("commands of the prompt in a script: the hint says how to start the prompt", function()
    local program = support.quote(support.program)
    local said = support.shell(program .. " 2>&1", ":lesson 3\n:check\n").out
    has(said, "hint: a line that begins with a colon is a command of the prompt: lutra -i")
  end)

  it("a loader indexed as a list: the hint shows how to iterate", function()
    local way = "DataLoader: cannot index batches: they are made one after another\n"
      .. "hint: for x, y in loader:iter() do ... end"
    check {
      {"loader = data.DataLoader(data.TensorDataset(lt.ones(4, 2)), {batch_size = 2})"},
      {"for i, batch in ipairs(loader) do print(batch) end", way},
      {"loader[1]", way},
      {"next(iter(loader))", "loader:iter()() is the first batch"},
      {"print(loader.nothing); loader:iter()()"},
    }
  end)

  it("indices on another device: the error names both devices", function()
    check({
      {"x, i = lt.arange(5):cuda(), lt.tensor{1, 2}"},
      {"x[i]:add_(1)"},
      {"x[i:cuda()]:add_(1)"},
      {"x[i:cuda(1)]", 'index: expected an index tensor on "cuda:0", where the tensor is, or '
        .. 'on "cpu", got one on "cuda:1"\nhint: index:to("cuda:0")'},
      {"x[i:cuda(1)] = 3", 'index: expected an index tensor on "cuda:0"'},
      {"x:cpu()[{{}, i:cuda()}]",
        "index: expected at most 1 index for a tensor of shape {5}, got 2"},
      {"x:cpu()[i:cuda()]", 'index: expected an index tensor on "cpu", where the tensor is, '
        .. 'got one on "cuda:0"\nhint: index:to("cpu")'},
      {"x[(x:gt(2)):cuda(1)] = 0", 'expected a mask on "cuda:0"'},
      {"x[x:gt(2):cpu()] = 0"},
      {"x:sum():item()"},
    }, "--emulate cuda:2")
  end)

  it("a dot in place of a colon: the hint shows the call with a colon", function()
    check {
      {"x, net = lt.ones(3), nn.Linear(3, 2)"},
      {"x.cuda()", "error: cell[2]:1: cuda: expected a tensor for argument 'self', got "
        .. "nil\nhint: call it as x:cuda(...)"},
      {"net.forward(x)", "error: cell[3]:1: forward: expected a module for argument 'self', got "
        .. "a tensor of shape {3}\nhint: call a method with a colon: net:forward(...)"},
      {"net.cuda()", "error: cell[4]:1: cuda: expected a module for argument 'self', got nil\n"
        .. "hint: call a method with a colon: net:cuda(...)"},
      {'net.to("cuda")', 'error: cell[5]:1: to: expected a module for argument \'self\', got '
        .. 'the string "cuda"\nhint: call a method with a colon: net:to(...)'},
      {"function nn.Linear:twice(y) return self(y) end; net.twice(x)",
        "error: cell[6]:1: twice: expected a module for argument 'self', got a tensor of shape "
          .. "{3}\nhint: call a method with a colon"},
      {"net:forward(x).shape"},
    }
  end)

  it("a model moved after its optimizer was made: the hint says how to move the state", function()
    local step = "net(x):sum():backward(); opt:step()"
    check({
      {"net, x = nn.Linear(3, 2), lt.ones(3)"},
      {"opt = optim.Adam(net:parameters()); " .. step},
      {'net:to "cuda"; x = x:cuda()'},
      {step, "exp_avg is state of Adam on the former device of its parameter",
        "opt:load_state_dict(opt:state_dict())"},
      {"opt:load_state_dict(opt:state_dict())"},
      {step},
      {"opt = optim.SGD(net:parameters(), {lr = 1, momentum = 0.9}); " .. step},
      {'net:to "cuda:1"; x = x:cuda(1)'},
      {step, "momentum_buffer is state of SGD on the former device"},
    }, "--emulate cuda:2")
  end)

  it("no GPU: the hint says how to emulate one", function()
    for i, said in ipairs(typed {'lt.ones(3):to "cuda"', "lt.cuda.mem_get_info()",
      "lt.cuda.synchronize()", "lt.cuda.Stream()"}) do
      has(said, 'expected an available device, got "cuda": ')
      has(said, "hint: lutra --emulate cuda:2 emulates two GPUs")
      has(said, ("error: cell[%d]:1: "):format(i))
    end
  end)

  it("a wrong argument of a trace, a guard or a lint: the error says what is expected", function()
    check {
      {"x = lt.ones(3)"},
      {"lt.placement.trace(x)", "expected a function for argument 'fn', got a tensor of shape {3}\n"
        .. "hint: function() ... end"},
      {"lt.placement.lint()", "expected a function for argument 'fn', got nil"},
      {'lt.placement.guard("disalow", print)', 'expected one of allow, ',
        '\'level\', got "disalow"'},
      {"lt.placement.lnt(print)", 'no field "lnt"\nhint: '},
      {":transfer", "did you mean :transfers?"},
      {":device", "did you mean :devices?"},
      {":lint print()", "unknown command :lint\nhint: the function lt.placement.lint"},
      {"lt.cuda.synchronise()", "did you mean 'lt.cuda.synchronize'?"},
    }
  end)

  it("help, typed as a word, shows help", function()
    local said = typed {"help", "help()", "help(lt.relu)", "help = 3", "help"}
    has(said[1], "Type Lua code.")
    has(said[1], ":devices")
    assert.equal(said[1], said[2])
    has(said[3], "lt.relu(self)")
    assert.equal("3\n", said[5])
  end)
end)

describe("--emulate", function()
  local function refused(what, text)
    local program, item = support.quote(support.program), support.quote(what)
    for _, line in ipairs {
      program .. " --emulate " .. item, "LUTRA_EMULATE=" .. item .. " " .. program,
    } do
      local result = support.shell(line .. " -e 'print(1)'")
      assert.equal(2, result.status)
      has(result.err, "lutra: emulate: " .. text)
    end
  end

  it("names what it cannot read, and what it can", function()
    for _, name in ipairs {"cude", "cpu", "2"} do
      refused(name, ('expected a device type, got "%s"\nhint: cuda:2 for two GPUs'):format(name))
    end
    refused("cuda:2,pcie4",
      'expected a device type, got "pcie4"\nhint: cuda:2 for two GPUs, mps for one of Apple, with '
        .. 'options: '
      .. "memory=256MiB, link=pcie4, peer=off, libraries=off")
    refused("link=pcie4", 'expected a device type first, got "link=pcie4"\nhint: cuda:2,link=pcie4')
    if devices.can_emulate "mps" then
      refused("cuda:2,mps:2", 'expected 1 device of type "mps", got 2')
    else
      refused("cuda:2,mps", 'cannot emulate "mps": not available in this build')
    end
    refused("cuda:0", 'expected a number of devices from 1 to 8, such as cuda:2, got "cuda:0"')
    refused("cuda:2,link=pcie9", 'expected a link (pcie3, pcie4')
    for _, size in ipairs {"lots", "0", "1TiB", "256mb", "", "MiB"} do
      refused("cuda:2,memory=" .. size,
        ('expected a size in KiB, MiB or GiB, such as memory=256MiB, got '
        .. '"memory=%s"'):format(size))
    end
    for _, option in ipairs {"peer=no", "speed=3", "peer="} do
      refused("cuda:2," .. option,
        ('expected an option such as memory=256MiB, link=pcie4, peer=off, libraries=off, got "%s"')
          :format(option))
    end
  end)

  it("reads sizes with their units", function()
    for size, bytes in pairs {["8MiB"] = 1 << 23, ["0.5GiB"] = 1 << 29, ["4096"] = 4096,
      ["64K"] = 1 << 16, ["8192B"] = 8192} do
      local result = support.run(("--emulate cuda:1,memory=%s,peer=on,link=pcie3 -e "
        .. "'print(select(2, lt.cuda.mem_get_info()))'"):format(size))
      assert.equal(bytes .. "\n", result.out .. result.err)
    end
  end)
end)
