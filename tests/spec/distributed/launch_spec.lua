-- lutra --nproc N: the ranks that it starts, their output, and the end of a job.

local program = require "program_support"
local ranks = require "ranks_support"
local output = require "lutra.repl.launch.output"
local has, has_not, quote = program.has, program.has_not, program.quote

-- A file that keeps what is written to it in `parts`.
local function recorder(parts, name)
  local file = {}
  function file:write(...)
    for _, text in ipairs{...} do parts[#parts + 1] = name .. ":" .. text end
    return self
  end
  function file:flush() return self end
  return file
end

-- Returns an Output of that many ranks, and a function that returns what it has written: the texts
-- of one file, in order.
local function new(count)
  local parts = {}
  local out = output.new(count, recorder(parts, "out"), recorder(parts, "err"))
  return out, function(name)
    local texts = {}
    for _, part in ipairs(parts) do
      local text = part:match("^" .. name .. ":(.*)$")
      if text then texts[#texts + 1] = text end
    end
    return table.concat(texts)
  end
end

describe("the output of several ranks", function()
  it("is whole lines with the rank in front", function()
    local o, text = new(2)
    o:add(1, "out", "one\ntw")
    o:add(0, "out", "a\n\nb\n")
    o:add(1, "err", "warning\n")
    o:add(1, "out", "o\n")
    assert.equal("rank 1: one\nrank 0: a\nrank 0: \nrank 0: b\nrank 1: two\n", text "out")
    assert.equal("rank 1: warning\n", text "err")
  end)

  it("is complete without a final newline", function()
    local o, text = new(1)
    o:add(0, "out", "no")
    o:add(0, "out", " newline")
    assert.equal("", text "out")
    o:finish(0)
    assert.equal("rank 0: no newline\n", text "out")
  end)

  it("is aligned for ten ranks and more", function()
    local o, text = new(11)
    o:add(3, "out", "x\n")
    o:add(10, "out", "x\n")
    assert.equal("rank  3: x\nrank 10: x\n", text "out")
  end)

  it("may have carriage returns before newlines", function()
    local o, text = new(2)
    for _, part in ipairs{"a\r\nb", "\r", "\nc\r\n"} do
      o:add(0, "out", part)
      o:add(1, "out", part)
    end
    assert.equal("rank 0: a\nrank 1: a\nrank 0: b\nrank 0: c\nrank 1: b\nrank 1: c\n", text "out")
  end)

  it("has the bar of rank 0 only, without a prefix", function()
    local o, text = new(2)
    for _, part in ipairs{"\r 0%", "\r", "50%", "\r100%", "\n", "done\n"} do
      o:add(0, "err", part)
      o:add(1, "err", part)
    end
    assert.equal("\r 0%\r50%\r100%\r100%\nrank 0: done\nrank 1: done\n", text "err")
  end)

  it("has the bar below each line", function()
    local o, text = new(2)
    o:add(0, "err", "\rbar")
    o:add(1, "err", "line\n")
    o:add(0, "err", "\rb")
    assert.equal("\rbar\r   \rrank 1: line\n\rbar\rb  ", text "err")
  end)

  it("has a line after a bar that was wiped", function()
    local o, text = new(2)
    for rank = 0, 1 do o:add(rank, "err", "\rbar\r   \rtext\n") end
    assert.equal("rank 0: text\nrank 1: text\n", text "err")
  end)

  it("has an error of several ranks once", function()
    local o, text = new(4)
    for _, rank in ipairs{2, 0, 1} do o:add(rank, "err", "x\n\1lutra: a.lua:1: no\n\2") end
    o:add(3, "err", "\1lutra: other")
    o:finish(3) -- it was ended while it wrote
    assert.equal("rank 2: x\nrank 0: x\nrank 1: x\n", text "err")
    assert.is_true(o:show_failures())
    has(text "err", "x\nranks 0 to 2:\nlutra: a.lua:1: no\nrank 3:\nlutra: other\n")
    assert.is_false(new(1):show_failures())
  end)

  it("has an error in pieces", function()
    local o, text = new(1)
    for byte in ("before\1lutra: no\n\2after\n"):gmatch "." do o:add(0, "err", byte) end
    assert.equal("rank 0: before\nrank 0: after\n", text "err")
    o:show_failures()
    has(text "err", "after\nrank 0:\nlutra: no\n")
  end)

  it("cannot be written to a closed pipe", function()
    local broken = {write = function() return nil, "Broken pipe" end}
    function broken:flush() return self end
    local o = output.new(1, broken, broken)
    o:add(0, "out", "x\n")
    assert.equal("stdout: Broken pipe", o.broken)
  end)

  it("names lists of ranks", function()
    assert.equal("rank 3", output.ranks{3})
    assert.equal("ranks 0 and 1", output.ranks{0, 1})
    assert.equal("ranks 0 to 3", output.ranks{0, 1, 2, 3})
    assert.equal("ranks 0, 2 to 4 and 7", output.ranks{0, 2, 3, 4, 7})
  end)
end)

-- Starts `lutra --nproc` with that command line; returns {out, err, status}.
local function launch(arguments, input) return program.run("--nproc " .. arguments, input) end

-- Runs the text as a script on some ranks.
local function launch_text(count, text, options)
  local file = program.file(text)
  local result = launch(("%d %s %s"):format(count, options or "", quote(file)))
  os.remove(file)
  return result, file
end

local rank_of = [[local rank = tonumber(os.getenv "OMPI_COMM_WORLD_RANK" or os.getenv "PMI_RANK")
]]

describe("wrong arguments of --nproc", function()
  it("are usage errors", function()
    for arguments, message in pairs{
      ["0 a.lua"] = "--nproc: expected a number of ranks from 1 to 1024, got '0'\n",
      ["two a.lua"] = "--nproc: expected a number of ranks from 1 to 1024, got 'two'\n",
      ["1.5 a.lua"] = "--nproc: expected a number of ranks from 1 to 1024, got '1.5'\n",
      ["9999999999999999999999 a.lua"] = "got '9999999999999999999999'\n",
      ["2"] = "--nproc: expected a script or -e, got none\n",
      ["2 -"] = "--nproc: expected a script or -e, got stdin\n",
      ["2 -i a.lua"] = "--nproc: expected a script or -e, got -i\n",
      ["2 --lesson a.lua"] = "--nproc: expected a script or -e, got --lesson\n",
      ["2 --info"] = "--nproc: expected a script or -e, got --info\n",
      ["2 --check a.lua"] = "--nproc: expected a script or -e, got --check\n",
    } do
      local result = launch(arguments)
      assert.equal(2, result.status)
      has(result.err, message)
      has(result.err, "hint: lutra --nproc 4 train.lua\n")
    end
    local result = program.run "--nproc"
    assert.equal(2, result.status)
    has(result.err, "lutra: expected an argument after --nproc\n")
  end)

  it("include more ranks than files may be open, and leave no pipes", function()
    local folder = program.folder()
    local result = program.shell(("ulimit -n 20; TMPDIR=%s %s --nproc 20 a.lua"):format(folder,
      quote(program.program)))
    local left = program.shell("ls -A " .. folder).out
    program.remove(folder)
    assert.equal(1, result.status)
    has(result.err, "lutra: --nproc: cannot make the named pipes: " .. folder)
    has(result.err, ": Too many open files\nhint: ulimit -n 4096\n")
    assert.equal("", left)
    result = program.shell(("TMPDIR=/dev/null/x %s --nproc 2 a.lua"):format(
      quote(program.program)))
    assert.equal(1, result.status)
    has(result.err, "lutra: --nproc: cannot make the named pipes: /dev/null/x/lutra-")
  end)

  it("include a machine without mpirun", function()
    local result = program.shell(("PATH=/nonexistent %s --nproc 2 a.lua"):format(
      quote(program.program)))
    assert.equal(1, result.status)
    assert.equal("lutra: --nproc: cannot find the program mpirun\n"
      .. "hint: install the Debian package openmpi-bin (or mpich)\n", result.err)
    local folder = program.folder() -- with an mpirun that does not run
    program.shell(("echo 'echo no library; exit 1' >%s/mpirun; chmod +x %s/mpirun"):format(folder,
      folder))
    result = program.shell(("PATH=%s:$PATH %s --nproc 2 a.lua"):format(folder,
      quote(program.program)))
    program.remove(folder)
    assert.equal(1, result.status)
    has(result.err, "lutra: --nproc: cannot run mpirun: no library\nhint: ")
  end)
end)

if not ranks.available() then
  describe("lutra --nproc", function()
    it("starts ranks", function() pending "needs mpirun" end)
  end)
  return
end

-- Returns the number of processes whose command line has the text.
local function processes(text)
  local found = program.shell("ps -ef | grep -F " .. quote(text) .. " | grep -v grep | wc -l")
  return tonumber(found.out)
end

-- Returns the lines of a string in alphabetical order.
local function sorted(text)
  local lines = {}
  for line in text:gmatch "[^\n]*\n" do lines[#lines + 1] = line end
  table.sort(lines)
  return table.concat(lines)
end

describe("lutra --nproc", function()
  it("opens more files than the limit of its shell", function()
    local result = program.shell(("ulimit -S -n 20; OMP_NUM_THREADS=1 %s --nproc 8 -e 'print(1)'")
      :format(quote(program.program)))
    assert.equal(0, result.status, result.err)
    assert.equal(8, select(2, result.out:gsub("rank %d: 1\n", "")))
  end)

  it("runs a script on each rank with its arguments and options", function()
    local result = launch_text(2, rank_of .. [[
print(rank, arg[1], select("#", ...), ...)
io.stderr:write("to stderr\n")
io.write "no newline"
print_nothing = undefined_global]], "-W")
    assert.equal(0, result.status, result.err)
    assert.equal("rank 0: 0\tnil\t0\nrank 0: no newline\nrank 1: 1\tnil\t0\n"
      .. "rank 1: no newline\n", sorted(result.out))
    has(result.err, "rank 1: to stderr\n")
  end)

  it("passes arguments on", function()
    local file = program.file(rank_of .. "io.write(rank, '|', table.concat({...}, '|'))")
    local result = launch("2 " .. quote(file) .. " 'a b' --nproc 7 -W")
    os.remove(file)
    assert.equal("rank 0: 0|a b|--nproc|7|-W\nrank 1: 1|a b|--nproc|7|-W\n", sorted(result.out))
    assert.equal("", result.err)
    assert.equal(0, result.status)
  end)

  it("passes options on", function()
    local result = program.run([[-W -e 'x = undefined_name' --nproc=2 -e 'print(arg[1])']])
    assert.equal(0, result.status)
    assert.equal("rank 0: -W\nrank 1: -W\n", sorted(result.out))
    has(result.err, "rank 0: lutra: warning: (command line):1: undefined global 'undefined_name'")
    has(result.err, "rank 1: lutra: warning: (command line):1: undefined global 'undefined_name'")
  end)

  it("runs ranks with emulated devices", function()
    local built = program.shell("ls " .. (os.getenv "LUTRA_BUILD" or "build")
      .. "/lib/lutra/cuda_emulated.so").status == 0
    if not built then return pending "no emulated devices" end
    local result = launch "2 --emulate cuda:3 -e 'print(lt.cuda.device_count())'"
    assert.equal("rank 0: 3\nrank 1: 3\n", sorted(result.out), result.err)
    result = launch "2 --emulate cuda:none -e 'print(1)'" -- once, not by each rank
    assert.equal(2, result.status)
    assert.is_nil(result.err:find "rank")
  end)

  it("divides the processors among the ranks", function()
    local show = [[-e 'print(os.getenv "OMP_NUM_THREADS")']]
    local cores = tonumber(program.shell("env -u OMP_NUM_THREADS nproc").out)
    local function run(environment, count)
      return program.shell(("env %s %s --nproc %d %s"):format(environment, quote(program.program),
        count, show)).out
    end
    assert.equal(("rank 0: %d\n"):format(cores), run("-u OMP_NUM_THREADS", 1))
    assert.equal(("rank 0: %d\n"):format(math.max(1, cores // 3)),
      sorted(run("-u OMP_NUM_THREADS", 3)):match "[^\n]*\n")
    assert.equal("rank 0: 7\nrank 1: 7\n", sorted(run("OMP_NUM_THREADS=7", 2)))
  end)

  it("shows lines when they are printed", function()
    local file = program.file [[print "ready" os.execute "sleep 30"]]
    local result = program.shell(([[%s --nproc 1 %s >out.$$ & p=$!
      for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        sleep 0.5; [ -s out.$$ ] && break
      done
      kill $p; wait $p; cat out.$$; rm out.$$]]):format(quote(program.program), quote(file)))
    os.remove(file)
    assert.equal("rank 0: ready\n", result.out)
  end)

  it("shows the bar of rank 0 once, without a prefix", function()
    local result = launch_text(2, [[
local lt = require "lutra"
for _ in lt.progress(3, {disable = false, ascii = true, ncols = 40}) do end]])
    assert.equal(0, result.status)
    local _, count = result.err:gsub("3/3[^\n]*\n", "")
    assert.equal(1, count, result.err)
    has_not(result.err, "rank")
  end)

  it("shows no bars when stderr is no terminal", function()
    local result = launch_text(2, [[for _ in require("lutra").progress(3) do end print "end"]])
    assert.equal("", result.err)
    assert.equal("rank 0: end\nrank 1: end\n", sorted(result.out))
  end)

  it("shows the bar of rank 0 on a terminal", function()
    if not program.has_terminal() then pending "needs python3" return end
    local file = program.file [[for _ in require("lutra").progress(3) do end]]
    local result = program.terminal({[[expect 3/3]]}, nil, "--nproc 2 " .. quote(file))
    os.remove(file)
    assert.equal(0, result.status, result.out)
    local _, count = result.out:gsub("3/3[^\n]*\n", "")
    assert.equal(1, count, result.out)
    has_not(result.out, "rank")
  end)
end)

describe("a job that fails", function()
  it("shows the same traceback once", function()
    -- A rank that starts late on a busy machine would be ended before it prints.
    local result, file = launch_text(3, "print 'start' os.execute 'sleep 1'\nlocal t\nt.x = 1")
    assert.equal(1, result.status)
    assert.equal("rank 0: start\nrank 1: start\nrank 2: start\n", sorted(result.out))
    local _, count = result.err:gsub("attempt to index a nil value", "")
    assert.equal(1, count, result.err)
    has(result.err, ("lutra: %s:3: attempt to index a nil value (local 't')\n"):format(file))
    has(result.err, ">    3 | t.x = 1\n")
    assert.is_truthy(result.err:find "^rank")
    has_not(result.err, "mpirun")
    has_not(result.err, "----")
  end)

  it("ends with the traceback of the rank that fails, and the other ranks end", function()
    local result, file = launch_text(3, rank_of .. [[
if rank == 1 then error "no data" end
os.execute "sleep 60"]])
    assert.equal(1, result.status)
    has(result.err, ("rank 1:\nlutra: %s:2: no data\n"):format(file))
    has_not(result.err, "mpirun")
    assert.equal(0, processes(file))
  end)

  it("has the exit status of the rank that ends with one", function()
    for _, status in ipairs{3, 255} do -- 255 is no signal
      local result, file = launch_text(2, rank_of .. ([[
if rank == 1 then os.exit(%d) end
os.execute "sleep 60"]]):format(status))
      assert.equal(status, result.status)
      assert.equal(("lutra: rank 1 ended with status %d\n"):format(status), result.err)
      assert.equal(0, processes(file))
    end
  end)

  it("names the signal that ended a rank", function()
    local result, file = launch_text(2, rank_of .. [[
if rank == 0 then os.execute "kill -9 $PPID" end
os.execute "sleep 60"]])
    assert.equal(137, result.status)
    assert.equal("lutra: rank 0 was ended by signal 9 (killed)\n", result.err)
    assert.equal(0, processes(file))
  end)

  it("is one that cannot find its script", function()
    local result = launch "2 /nonexistent/script.lua"
    assert.equal(1, result.status)
    has(result.err, "lutra: cannot open /nonexistent/script.lua")
    has_not(result.err, "mpirun")
  end)

  it("is one whose output is not read", function()
    local file = program.file "for i = 1, 1e9 do print(i) end"
    local result = program.shell(("{ %s --nproc 2 %s; echo $? >&2; } | head -n 1"):format(
      quote(program.program), quote(file)))
    os.remove(file)
    assert.equal("lutra: cannot write to stdout: Broken pipe\n1\n", result.err)
    assert.equal(0, processes(file))
  end)
end)

describe("a job whose output is read slowly", function()
  -- Returns the number of lines of a job's output, and what it wrote to stderr.
  local function read_slowly(text, kill)
    local file = program.file(text)
    local result = program.shell(([[
      { %s --nproc 2 %s & p=$!; %s wait $p; echo "status $?" >&2; } |
        { n=0; while read -r line; do n=$((n + 1)); sleep 0.02; done; echo $n; }]]):format(
      quote(program.program), quote(file), kill or ""))
    os.remove(file)
    assert.equal(0, processes(file))
    return result.out, result.err
  end

  it("is complete", function()
    local out, err = read_slowly [[for i = 1, 40 do print(("x"):rep(20000)) end]]
    assert.equal("status 0\n", err)
    assert.equal("80\n", out)
  end)

  it("ends when mpirun is killed", function()
    local _, err = read_slowly("while true do print(('x'):rep(20000)) end",
      "sleep 3; kill -9 $(ps -o pid= --ppid $p);")
    assert.is_truthy(err:find "^lutra: .*\nstatus [1-9]%d*\n$", err)
  end)
end)

describe("a signal", function()
  -- Sends a signal to a job of two ranks that sleep. Returns its exit status, its output, the name
  -- of the script, and the names of the files that the launcher left.
  local function send(signal)
    local file = program.file [[print "ready" os.execute "sleep 61"]]
    local log, folder = os.tmpname(), program.folder()
    local result = program.shell(([[
      TMPDIR=%s %s --nproc 2 %s >%s 2>&1 & p=$!
      for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        sleep 0.5; [ $(grep -c ready %s) = 2 ] && break
      done
      kill -%s $p; wait $p; echo $?]]):format(folder, quote(program.program), quote(file),
      log, log, signal))
    local text = program.shell("cat " .. log).out
    local left = program.shell("ls " .. folder .. " | grep lutra").out
    program.remove(folder)
    os.remove(log)
    os.remove(file)
    return tonumber(result.out), text, file, left
  end

  it("ends the job: Ctrl-C, SIGTERM, SIGHUP", function()
    for signal, status in pairs{INT = 130, TERM = 143, HUP = 129} do
      local found, text, file, left = send(signal)
      assert.equal(status, found)
      assert.equal("rank 0: ready\nrank 1: ready\n", sorted(text))
      assert.equal(0, processes(file))
      assert.equal("", left)
    end
  end)

  it("that kills the launcher ends the job", function()
    local _, _, file = send "KILL"
    for _ = 1, 20 do -- mpirun takes a moment
      if processes(file) == 0 then break end
      os.execute "sleep 0.5"
    end
    assert.equal(0, processes(file))
  end)
end)
