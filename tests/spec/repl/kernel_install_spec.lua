-- lutra --kernel install, uninstall and list.

local json = require "lutra.internal.json"
local support = require "program_support"

local has, quote = support.has, support.quote

local home
before_each(function() home = support.folder() end)
after_each(function() support.remove(home) end)

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function exists(path) return os.rename(path, path) ~= nil end

-- Runs the words after --kernel with `home` as the home folder and these variables.
local function kernel(words, variables, program)
  local list = {}
  for word in words:gmatch "[^|]+" do list[#list + 1] = quote(word) end
  return support.shell(("env -u XDG_DATA_HOME -u JUPYTER_DATA_DIR -u JUPYTER_PATH -u VIRTUAL_ENV "
    .. "-u CONDA_PREFIX HOME=%s %s %s --kernel %s"):format(quote(home), variables or "",
    quote(program or support.program), table.concat(list, " ")))
end

local mac = io.popen "uname":read "l" == "Darwin"
local function user_folder()
  return home .. (mac and "/Library/Jupyter/kernels" or "/.local/share/jupyter/kernels")
end

describe("lutra --kernel install", function()
  it("writes a kernel that runs this program, twice the same", function()
    for _ = 1, 2 do
      local result = kernel "install"
      assert.equal("", result.err)
      assert.equal(0, result.status)
      has(result.out, user_folder() .. "/lutra\n")
      has(result.out, "jupyter lab")
      local spec = assert(json.decode(read(user_folder() .. "/lutra/kernel.json")))
      assert.equal(support.program, spec.argv[1])
      assert.equal("--kernel", spec.argv[2])
      assert.equal("{connection_file}", spec.argv[3])
      assert.is_nil(spec.argv[4])
      assert.equal("lua", spec.language)
      assert.equal("message", spec.interrupt_mode)
      assert.equal("Lua 5.4 (Lutra)", spec.display_name)
      assert.is_nil(next(spec.env))
    end
    has(read(user_folder() .. "/lutra/logo-svg.svg"), "<svg ")
    for _, size in ipairs {32, 64} do
      local png = read(("%s/lutra/logo-%dx%d.png"):format(user_folder(), size, size))
      assert.equal("\x89PNG\r\n\26\n", png:sub(1, 8))
      assert.equal(size, (">I4"):unpack(png, 17))
    end
  end)

  it("chooses the folder as Jupyter does", function()
    for _, case in ipairs {
      {"install", "XDG_DATA_HOME=%s/x", mac and "/Library/Jupyter/kernels" or "/x/jupyter/kernels"},
      {"install", "JUPYTER_DATA_DIR=%s/d XDG_DATA_HOME=%s/x", "/d/kernels"},
      {"install|--user|--name|a.B-2_c", "", nil, "a.B-2_c"},
      {"install|--prefix|" .. home .. "/with space/é'", "", "/with space/é'/share/jupyter/kernels"},
      {"install|--prefix=" .. home .. "/e", "", "/e/share/jupyter/kernels"},
    } do
      local result = kernel(case[1], (case[2]:gsub("%%s", home)))
      assert.equal("", result.err)
      local folder = case[3] and home .. case[3] or user_folder()
      assert.is_true(exists(folder .. "/" .. (case[4] or "lutra") .. "/kernel.json"), case[1])
    end
  end)

  it("accepts a program whose path has spaces and letters that are not ASCII", function()
    local folder = home .. "/a b/ü"
    assert(os.execute(("mkdir -p %s && ln -s %s %s/lutra"):format(quote(folder),
      quote(support.program), quote(folder))))
    assert.equal(0, kernel("install", "", folder .. "/lutra").status)
    local spec = json.decode(read(user_folder() .. "/lutra/kernel.json"))
    assert.equal(folder .. "/lutra", spec.argv[1])
    assert.equal(0, kernel("install", "PATH=" .. quote(folder) .. ":$PATH", "lutra").status)
    assert.is_true(json.decode(read(user_folder() .. "/lutra/kernel.json")).argv[1] ~= "lutra")
  end)

  it("installs a kernel with emulated devices", function()
    assert.equal(0, kernel("install|--emulate|cuda:2,memory=1GiB").status)
    local spec = json.decode(read(user_folder() .. "/lutra-cuda/kernel.json"))
    assert.equal("cuda:2,memory=1GiB", spec.env.LUTRA_EMULATE)
    assert.equal("Lua 5.4 (Lutra, emulated cuda:2,memory=1GiB)", spec.display_name)
  end)

  it("reports wrong arguments with the usage", function()
    for words, message in pairs {
      ["install|--name|../x"] = "expected a name of letters, digits, '.', '_' and '-', got "
        .. '"../x"',
      ["install|--name|.."] = "expected a name",
      ["install|--name"] = "expected a value after --name",
      ["install|--name|a|--name|b"] = "expected one --name",
      ["install|--user|--prefix|/x"] = "expected --user or --prefix, got both",
      ["install|--user=x"] = "unknown argument --user=x",
      ["install|all"] = "unknown argument all",
      ["list|--name|x"] = "unknown argument --name",
    } do
      local result = kernel(words)
      assert.equal(2, result.status, words)
      has(result.err, "lutra: kernel: " .. message)
      has(result.err, "usage: lutra --kernel install")
    end
  end)

  it("reports a folder that cannot be written, and a missing home", function()
    local file = home .. "/file"
    io.open(file, "w"):close()
    local result = kernel("install|--prefix|" .. file)
    assert.equal(1, result.status)
    has(result.err, "lutra: kernel: cannot create the folder " .. file .. "/share")
    has(result.err, "\nhint: ")
    result = kernel("install", "HOME=")
    assert.equal(1, result.status)
    has(result.err, "cannot find the user's folder: HOME is not set to an absolute path\nhint: ")
  end)

  it("does not replace the kernel of another program", function()
    local folder = user_folder() .. "/other"
    assert(os.execute("mkdir -p " .. quote(folder)))
    local file = assert(io.open(folder .. "/kernel.json", "w"))
    file:write '{"argv": ["python3", "-m", "other", "{connection_file}"]}'
    file:close()
    for _, action in ipairs {"install", "uninstall"} do
      local result = kernel(action .. "|--name|other")
      assert.equal(1, result.status)
      has(result.err, "its kernel.json is not Lutra's")
    end
    has(read(folder .. "/kernel.json"), "python3")
  end)
end)

describe("lutra --kernel list and uninstall", function()
  it("shows the kernels that run Lutra, and whether their program exists", function()
    has(kernel("list").out, "no kernel of Lutra is installed")
    kernel "install"
    kernel "install|--name|second"
    kernel("install|--name|third", "JUPYTER_DATA_DIR=" .. quote(home .. "/d"))
    local path = user_folder() .. "/second/kernel.json"
    local text = read(path):gsub(support.program:gsub("%p", "%%%0"), "/nowhere/lutra")
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    local result = kernel("list", "JUPYTER_PATH=" .. quote(home .. "/d"))
    assert.equal(0, result.status)
    has(result.out, ("lutra\n  folder   %s/lutra\n  program  %s\n"):format(user_folder(),
      support.program))
    has(result.out, "  program  /nowhere/lutra  (this program does not exist")
    has(result.out, "third\n")
  end)

  it("removes what install wrote", function()
    kernel "install"
    kernel "install|--name|second"
    local result = kernel "uninstall|--name|lutra|--name|second"
    assert.equal("", result.err)
    has(result.out, "removed the kernel second from " .. user_folder() .. "/second")
    assert.is_false(exists(user_folder() .. "/lutra"))
    assert.is_false(exists(user_folder() .. "/second"))
    result = kernel "uninstall"
    assert.equal(1, result.status)
    has(result.err, "cannot find a kernel lutra in ")
  end)

  it("keeps files that install did not write", function()
    kernel "install"
    local mine = user_folder() .. "/lutra/kernel.css"
    io.open(mine, "w"):close()
    local result = kernel "uninstall"
    assert.equal(1, result.status)
    has(result.err, "removed the kernel, but not its folder: ")
    assert.is_true(exists(mine))
  end)
end)
