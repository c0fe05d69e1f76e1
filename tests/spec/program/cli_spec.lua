-- lutra.cli: the options of scripts, and one line for each mistake in them.

local support = require "nn_support"

local program = support.root .. (os.getenv "LUTRA_TEST_DEBUG" and "build-debug" or "build")
  .. "/lutra"
local path

setup(function()
  path = os.tmpname()
  local file <close> = assert(io.open(path, "w"))
  file:write [[
local cli = require "lutra.cli"
local options = cli.parse(arg, {
  {"data", nil, "folder with the files", required = true},
  {"epochs", 10, "passes over the data", least = 1},
  {"rate", 0.5, "learning rate", least = 0},
  {"model", "mlp", "kind of the model", choices = {"mlp", "lstm", "bigram"}},
  {"out", "", "file for the result"},
  {"device", "cpu", "device"},
  {"quick", false, "stop early"},
})
print(options.data, options.epochs, options.rate, options.model, options.out, options.quick)
print(cli.device(options.device))
print(#cli.read_file("data", options.data))
]]
end)
teardown(function() os.remove(path) end)

-- Returns the exit status and the output of the script with these options.
local function run(words)
  local pipe = io.popen(("%s %s %s 2>&1 </dev/null"):format(program, path, words))
  local text = pipe:read "a"
  local _, _, status = pipe:close()
  return status, text
end

describe("the options of a script", function()
  it("are read with their types", function()
    local status, text = run("--data " .. path .. " --epochs=3 --rate 1 --model lstm --quick")
    assert.equal(0, status, text)
    assert.is_truthy(text:find(path .. "\t3\t1\tlstm\t\ttrue\ncpu\n", 1, true), text)
  end)

  it("are listed by --help", function()
    local status, text = run "--help"
    assert.equal(0, status)
    for _, line in ipairs{"--data           folder with the files (required)",
      "--epochs         passes over the data (10)", "--out            file for the result"} do
      assert.is_truthy(text:find(line .. "\n", 1, true), text)
    end
  end)

  it("are checked", function()
    for words, message in pairs{
      [""] = "--data: expected the folder with the files (--help lists the options)",
      ["--data x --epochs 0"] = "--epochs: expected at least 1, got 0",
      ["--data x --rate -1"] = "--rate: expected at least 0, got -1",
      ["--data x --model cnn"] = '--model: expected "mlp", "lstm" or "bigram", got "cnn"',
      ["--data x --device meta"] = '--device: expected "cpu", "cuda" or "mps", got "meta", which '
        .. "computes nothing",
      ["--data /no/such/file"] = "--data: cannot open /no/such/file: No such file or directory",
      ["--data /"] = "--data: cannot read /: Is a directory",
    } do
      local status, text = run(words)
      assert.equal(1, status, words)
      assert.equal(path:match "[^/]*$" .. ": " .. message, text:match "([^\n]*)\n$", words)
    end
  end)
end)
