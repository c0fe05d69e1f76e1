-- What is saved, by every function and command that saves: into pipes, devices and links, at paths
-- with NUL bytes, after a process was killed. The mechanism itself is tested in C (test_replace.c).

local lt = require "lutra"
local support = require "program_support"

local has, quote, session, shell = support.has, support.quote, support.session, support.shell

local folder
before_each(function() folder = support.folder() end)
after_each(function() support.remove(folder) end)

local function path(name) return folder .. "/" .. name end

local function read(name)
  local file <close> = assert(io.open(path(name), "rb"))
  return file:read "a"
end

-- Runs `line` of the shell in the folder; $lutra is the program.
local function run(line, input)
  return shell(("cd %s && lutra=%s && { %s ; }"):format(quote(folder), quote(support.program),
    line), input)
end

-- What kind of file a name of the folder is, in words of stat(1); links are not followed.
local function kind(name)
  return (run(("stat -c %%F %s"):format(quote(name))).out:gsub("\n", ""))
end

-- How a session saves to FILE, and a piece of what is then in it.
local writers = {
  ["lt.save_npy"] = {"lt.save_npy('FILE', lt.ones{2})", "NUMPY"},
  ["lt.save_safetensors"] = {"lt.save_safetensors('FILE', {x = lt.ones{2}})", '"x"'},
  ["lt.save"] = {"lt.save({x = lt.ones{2}}, 'FILE')", '"x"'},
  ["lt.save_npz"] = {"lt.save_npz('FILE', {x = lt.ones{2}})", "x.npy"},
  ["export_chrome_trace"] = {
    "lt.profiler.profile(function() lt.ones{2}:exp() end):export_chrome_trace 'FILE'",
    "traceEvents"},
  ["trace:export"] = {"lt.placement.trace(function() lt.ones{2}:exp() end):export 'FILE'",
    "traceEvents"},
  [":save"] = {"1 + 41\n:save --force FILE", "1 + 41"},
  [":where --svg"] = {"x = lt.ones{2}\n:where x --svg FILE", "<svg"},
}

-- The input for a session that saves to the file by that writer.
local function input_of(writer, name)
  return writer[1]:gsub("FILE", (name:gsub("%%", "%%%%"))) .. "\n"
end

describe("every writer", function()
  for name, writer in pairs(writers) do
    it(name .. " writes a pipe and leaves it a pipe", function()
      local result = run("mkfifo pipe && { timeout 20 cat pipe >got & } && "
        .. "timeout 20 $lutra -i --no-init >out 2>err; wait; cat err; stat -c %F pipe",
        input_of(writer, path "pipe"))
      assert.equal("fifo\n", result.out)
      has(read "got", writer[2])
      assert.equal("", run("ls -a | grep -F .tmp").out)
    end)

    it(name .. " follows a link and keeps it", function()
      local result = run("mkdir real && ln -s real/there link && printf old >real/there && "
        .. "chmod 640 real/there && $lutra -i --no-init >out 2>err; cat err; ls real; "
        .. "stat -c %a real/there", input_of(writer, path "link"))
      assert.equal("there\n640\n", result.out)
      assert.equal("symbolic link", kind "link")
      has(read "real/there", writer[2])
    end)
  end

  it("leaves a device a device", function()
    if run("mknod null c 1 3 2>/dev/null && : >null").status ~= 0 then
      if run("test $(id -u) = 0").status == 0 then return pending "no devices can be made here" end
      run "ln -s /dev/null null" -- which only root could replace
    end
    local before = kind "null"
    for _, writer in pairs(writers) do
      assert.equal("", session(input_of(writer, path "null")).err)
      assert.equal(before, kind "null")
    end
    assert.equal("character special file", kind "null" == "symbolic link" and
      run("stat -L -c %F null").out:gsub("\n", "") or kind "null")
  end)

  it("says when a device is full", function()
    if not io.open "/dev/full" then return pending "no /dev/full" end
    for _, writer in pairs(writers) do
      has(session(input_of(writer, "/dev/full")).err, '"/dev/full": No space left on device')
    end
    has(session(input_of(writers["lt.save"], "/dev/full")).err, 'save: cannot write "/dev/full"')
  end)

  it("keeps the old file when the disk is full", function()
    for _, code in ipairs {"lt.save_npy('file', lt.ones{5000})",
      "lt.save_safetensors('file', {x = lt.ones{5000}})",
      "s = '" .. ("x"):rep(5000) .. "'\n:save --force file"} do
      run "rm -rf * && printf old >file"
      local result = run("(ulimit -f 2; $lutra -i --no-init 2>&1) | cat", code .. "\n")
      has(result.out, '"file": File too large')
      assert.equal("old", read "file")
      assert.equal("file\n", run("ls -A").out)
    end
  end)

  it("saves beside what a process of the same number has left", function()
    local result = run("for i in 0 1 2; do : >x.npy.$$-$i.tmp; done; "
      .. "exec $lutra -e \"lt.save_npy('x.npy', lt.ones{2})\"")
    assert.same({"", 0}, {result.err, result.status})
    assert.equal("{2}", tostring(lt.load_npy(path "x.npy").shape))
  end)

  it("removes what a killed process has left of the same file", function()
    local big = "local f = assert(io.open('/proc/self/stat')); local pid = f:read 'n' f:close() "
      .. "local t = setmetatable({}, {__pairs = error}) "
      .. "local r = require('lutra.files').replace('x.npy') r:write 'half' "
      .. "os.execute('kill -9 ' .. pid)"
    if not io.open "/proc/self/stat" then return pending "no /proc" end
    run("$lutra -e " .. quote(big) .. "; true")
    assert.truthy(run("ls").out:find "x%.npy%.%d+%-%x+%-%x+%.tmp")
    assert.equal("", run("$lutra -e \"lt.save_npy('x.npy', lt.ones{2})\"").err)
    assert.equal("x.npy\n", run("ls").out)
  end)

  it("saves strings where the core does not load", function()
    local script = support.file "package.preload['lutra.core'] = function() error 'broken' end"
    local result = session("1 + 41\n:save " .. path "cells.lua" .. "\n", script)
    os.remove(script)
    has(result.out, "wrote 1 cell")
    has(read "cells.lua", "1 + 41")
  end)
end)

describe("a path with a NUL byte", function()
  local nul = "/nowhere/a\0b"

  local function refuses(text, f, ...)
    local ok, message = pcall(f, ...)
    assert.is_false(ok)
    assert.equal(text, (message:gsub("^[^:]*:%d+: ", "")))
  end

  it("is refused by every function that saves or loads", function()
    local got = ": expected a path without NUL bytes for argument 'path', got \"/nowhere/a\\0b\""
    refuses("save_npy" .. got, lt.save_npy, nul, lt.ones{1})
    refuses("save_safetensors" .. got, lt.save_safetensors, nul, {x = lt.ones{1}})
    refuses("load_npy" .. got, lt.load_npy, nul)
    refuses("load_npy" .. got, lt.load_npy, {nul, device = "cpu"})
    refuses("load_safetensors" .. got, lt.load_safetensors, nul)
    refuses("load_idx" .. got, lt.load_idx, nul)
    local profile = lt.profiler.profile(function() lt.ones{1}:exp() end)
    refuses("export_chrome_trace" .. got, profile.export_chrome_trace, profile, nul)
    local trace = lt.placement.trace(function() end)
    refuses("trace:export" .. got, trace.export, trace, nul)
    refuses("mnist" .. got:gsub("'path'", "'dir'"), lt.data.mnist, nul)
    refuses("load_npy: expected a path without NUL bytes for argument 'path', got \""
      .. "\\1\\\"\\\\\\0001" .. ("x"):rep(55) .. "\"...", lt.load_npy,
      "\1\"\\\0" .. "1" .. ("x"):rep(100))
  end)

  it("is refused by the commands of the prompt", function()
    local made = ("local self, path = require('lutra.repl').session, %q\n"):format(path "a")
    for command, said in pairs {
      save = "save: ", run = "cannot read ", ["where x --svg"] = "where: ", load = "load: ",
      keep = "keep: ", cd = "cd: ",
    } do
      local result = session(made .. "x = lt.ones{1}\n1 + 1\nself:execute(':" .. command
        .. " ' .. path .. '\\0b')\n")
      has(result.err, said)
      has(result.err, "expected a path without NUL bytes")
    end
    assert.equal("", run("ls -A").out)
  end)
end)

describe("a prompt's commands", function()
  it("do not open a pipe to see whether a file is there", function()
    run "mkfifo pipe"
    for command, said in pairs {save = "cannot overwrite pipe: it exists",
      keep = "cannot overwrite pipe: it exists and was not written by :keep"} do
      local result = run("timeout 20 $lutra -i --no-init", ("x = 1\n:%s pipe\n"):format(command))
      assert.equal(0, result.status)
      has(result.err, said)
    end
  end)
end)
