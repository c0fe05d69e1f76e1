-- Every command of the prompt, once, on terminals of 40 and 120 columns. What each does in full is
-- tested where its module is; here that it works in a terminal, and that none was forgotten.

local commands = require "lutra.repl.commands"
local screen = require "screen_support"
local support = require "program_support"

-- In their order: the command's row, then what is entered and a string that the screen then holds,
-- or nil.
local steps = {
  {"help", ":help whos", ":whos [PATTERN]"},
  {"doc", ":doc lt.relu", "returns"},
  {"source", ":source nn.Sequential", "Sequential"},
  {"apropos", ":apropos logsigmoid", "nn.LogSigmoid"},
  {"run", ":run s.lua word", "got word"},
  {"edit", ":edit s.lua", "got nothing"},
  {"reload", ":reload", "no module of yours is loaded"},
  {"shell", ":shell echo sh''ell", "shell"},
  {"set", ":set depth 5", "depth"},
  {"whos", ":whos x", "total on cpu: 24 B in 1 storage"},
  {"devices", ":devices", "· free"},
  {"emulate", ":emulate", "devices are emulated"},
  {"where", ":where x", "held by  x"},
  {"transfers", ":transfers x:exp()", "no copies between devices, no waits"},
  {"tree", ":tree {a = x}", "└─ a  {3} int64"},
  {"plot", ":plot x", "┬"},
  {"image", ":image lt.eye(4)", "{4, 4} float32"},
  {"print", ":print", "linewidth  80"},
  {"grad", ":grad sum", "2 nodes, 1 leaf"},
  {"time", ":time 20 + 3", "(CPU"},
  {"timeit", ":timeit -n 2 -r 2 20 + 3", "± "},
  {"prof", ":prof x:exp()", "1 op"},
  {n = 5, "debug", "local function f(a) error 'bad' end f(41)", "bad", ":debug", "debug["},
  {"bt", ":bt", "in function 'f'"},
  {"locals", ":locals", "41"},
  {"up", ":up", "in cell"},
  {"down", ":down", "in function 'f'"},
  {"frame", ":frame 1", "in function 'f'"},
  {"continue", ":continue", nil},
  {n = 5, "next", "do local b = 1; lt.breakpoint()\nb = 2\nb = 3 end", "debug>", ":next", ">    2"},
  {n = 5, "step", ":step", ">    3", ":continue", nil},
  {"history", ":history 1", "lt.breakpoint()"},
  {"save", ":save out.lua", "cells to out.lua"},
  {"keep", ":keep w.st", "kept 2 tensors in "},
  {"load", ":load w.st", "loaded 2 tensors in "},
  {"cd", ":cd /", "/"},
  {"pwd", ":pwd", "/"},
  {"lesson", ":lesson list", "Make a tensor"},
  {"check", ":check", "check: expected an open lesson"},
  {"hint", ":hint", "hint: expected an open lesson"},
  {"reset", ":reset", "removed "},
  {"quit", ":quit", nil},
}

-- Waits until `text` is on the screen, whatever lines it is in, and a prompt below it.
local function wait_for(s, text)
  s:wait(function()
    local lines = s:lines()
    local last = lines[#lines] or ""
    if not (last:match "^%[%d+%]>$" or last:match "^debug%S*>$") then return false end
    return not text or s:text():gsub("\n *", " "):find(text, 1, true)
  end, ("%q did not come"):format(text or "a prompt"))
end

-- Enters a string on a screen that is cleared before.
local function enter(s, text)
  s:key "C-l"
  s:wait(function() return (s:lines()[1] or ""):match "^%S+>$" and not s:lines()[2] end, "no clear")
  s:paste(text)
  s:expect(text:sub(1, 8))
  s:key "Enter"
end

describe("the commands", function()
  it("have a step here each", function()
    local here = {}
    for _, step in ipairs(steps) do here[step[1]] = true end
    for _, row in ipairs(commands.rows) do
      assert(here[row.name], "no terminal has seen :" .. row.name)
    end
  end)

  for _, columns in ipairs {40, 120} do
    it(("work at %d columns"):format(columns), function()
      if not screen.available() then return pending "needs tmux" end
      local home = support.folder()
      local file = assert(io.open(home .. "/s.lua", "w"))
      file:write "print('got ' .. (... or 'nothing'))\n"
      file:close()
      local s <close> = screen.open{columns = columns, rows = 60, home = home,
        environment = "VISUAL= EDITOR=true PAGER=cat COLORTERM=truecolor",
        command = ("env -C %s %s --no-init"):format(home, support.quote(support.program))}
      s:expect "[1]>"
      s:paste "x = tensor{1, 2, 3}\nsum = (lt.ones{2, requires_grad = true} * 2):sum()"
      s:expect "* 2):sum()"
      s:key "Enter"
      wait_for(s)
      for _, step in ipairs(steps) do
        for i = 2, step.n or 3, 2 do
          enter(s, step[i])
          if step[i] ~= ":quit" then wait_for(s, step[i + 1]) end
        end
      end
      assert.equal(0, s:finish())
      support.remove(home)
    end)
  end
end)
