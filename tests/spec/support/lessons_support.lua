--- What the specs of lessons share: prompts with a home of their own, and what is looked for in
-- what they print.

local support = require "program_support"
local quote = support.quote

local lessons = {}

local root = debug.getinfo(1, "S").source:match "^@(.*)tests/spec/" or "./"
if root == "" then root = "./" end
lessons.root = root

--- Runs a prompt whose home is the folder `home`. Returns {out, err, status}.
function lessons.session(home, input, arguments, environment)
  return support.shell(("env -u LUTRA_LESSONS -u CUDA_VISIBLE_DEVICES HOME=%s XDG_STATE_HOME=%s "
    .. "XDG_CONFIG_HOME=%s %s %s --no-init %s"):format(home, home .. "/state", home .. "/config",
      environment or "", quote(support.program),
      arguments or "--emulate cuda:2,memory=256MiB -i"), input)
end

local function flat(text) return (text:gsub("%s+", " ")) end

--- Fails unless each of the texts is in `text`, however its lines are broken.
function lessons.has(text, ...)
  for _, expected in ipairs {...} do
    assert(flat(text):find(expected, 1, true), ("%q is not in:\n%s"):format(expected, text))
  end
end


function lessons.write(path, text)
  assert(os.execute("mkdir -p " .. quote(path:match "^(.*)/")))
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

function lessons.read(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

--- The names of the files of the lessons that come with Lutra, in their order.
function lessons.files()
  local pipe <close> = assert(io.popen("ls " .. quote(root .. "lib/lutra/lessons")))
  local list = {}
  for file in pipe:lines() do list[#list + 1] = file end
  return list
end

return lessons
