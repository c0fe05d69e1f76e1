-- The history file, whatever stands there: the prompt starts, and Up finds what is of use.

local screen = require "screen_support"
local support = require "program_support"

-- A terminal whose history file `make` has made of the path that it is given.
local function with_history(make, columns, test)
  if not screen.available() then return pending "needs tmux" end
  local home = support.folder()
  os.execute("mkdir -p " .. home .. "/state/lutra")
  make(home .. "/state/lutra/history")
  do
    local s <close> = screen.open{home = home, columns = columns, arguments = "--no-init"}
    s:expect "[1]>"
    test(s, home .. "/state/lutra/history")
  end
  support.remove(home)
end

local function writer(text)
  return function(path)
    local file = assert(io.open(path, "wb"))
    file:write(text)
    file:close()
  end
end

for _, columns in ipairs {40, 120} do
  describe(("the history file at %d columns"):format(columns), function()
    it("may be a folder: then there is none", function()
      with_history(function(path) os.execute("mkdir " .. path) end, columns, function(s)
        s:enter "20 + 22"
        s:expect "42"
        s:key "Up"
        s:expect "[2]> 20 + 22"
      end)
    end)

    it("may be large or hold anything: its last entries are offered", function()
      local old = ("x"):rep(9 << 20) .. "\n\0\255\27[31m\n"
      with_history(writer(old .. "y = {\\n  1}\nlast = 1\n"), columns, function(s, path)
        s:key("Up", "Up")
        s:expect "[1]> y = {"
        s:expect "       1}"
        s:key "Enter"
        s:expect "[2]>"
        local file <close> = io.open(path, "rb")
        file:seek("end", -22)
        assert.equal("\nlast = 1\ny = {\\n  1}\n", file:read "a")
      end)
    end)
  end)
end
