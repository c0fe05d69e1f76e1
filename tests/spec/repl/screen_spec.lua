-- The prompt on a terminal of 40 and of 120 columns, as tmux shows it.

local screen = require "screen_support"

for _, columns in ipairs {40, 120} do
  describe(("the prompt at %d columns"):format(columns), function()
    it("numbers its cells and prints results", function()
      if not screen.available() then return pending "needs tmux" end
      local s <close> = screen.open{columns = columns}
      s:expect_last "[1]>"
      s:enter "20 + 22"
      s:expect_last "[2]>"
      assert.truthy(s:text():find("[1]> 20 + 22\n42\n[2]>", 1, true))
    end)
  end)
end
