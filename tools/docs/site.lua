-- Writes the sources of the site: the guides and documents of docs/, the generated reference, and
-- the settings of MkDocs. `make docs` builds the site from them (tools/docs/build).
--
--   lutra [--emulate cuda:2] tools/docs/site.lua FOLDER
--
-- Pages have the same places as in docs/, so that a link between two of them is right in both.

local markdown = dofile "tools/docs/markdown.lua"
local notebook_page = dofile "tools/docs/notebook_page.lua"
local reference = dofile "tools/docs/reference.lua"

local out = assert(arg[1], "usage: lutra tools/docs/site.lua FOLDER")

-- The guides in the order in which they are read, and the documents that belong to them.
local guides = {
  "guide/quickstart.md", "guide/tensors.md", "guide/indexing.md", "guide/autograd.md",
  "guide/training.md", "guide/display.md", "guide/saving.md", "guide/devices.md",
  "guide/distributed.md", "guide/kernels.md", "prompt.md", "notebooks.md", "pytorch.md",
  "guide/torch7.md", "guide/performance.md", "guide/mixed_precision.md", "guide/extending.md",
  "architecture.md",
}
local documents = {
  "placement.md", "lessons.md", "install.md", "command-line.md", "distributed-jobs.md",
  "devices.md", "mps.md", "metal-apis.md", "gpu-testing.md",
}

-- The notebooks of examples/notebooks/ in the order in which they are read.
local notebooks = {"tour", "autograd", "mnist", "placement", "attention"}

local function read(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

local function write(path, text)
  local folder = path:match "^(.*)/"
  assert(os.execute(("mkdir -p '%s'"):format(folder)))
  local file <close> = assert(io.open(path, "wb"))
  assert(file:write(text))
end

local function title_of(text) return text:match "^# ([^\n]+)" or error "a page without a title" end

-- Writes the page of an example, "examples/mnist.lua"; returns its path on the site.
local function example_page(path)
  local page = path:gsub("%.lua$", ".md")
  write(out .. "/docs/" .. page, ("# %s\n\n%s\n"):format(path,
    markdown.block(read(path))))
  return page
end

-- Links to examples lead to their pages. A link to another file that is not on the site (README.md)
-- becomes its text.
local function site_links(text, prefix, up)
  up = up or prefix:gsub("[^/]+", "..")
  return (text:gsub("%[([^%]]-)%]%(([^)%s]+)%)", function(label, target)
    if target:find "^https?:" or target:find "^#" then return nil end
    local path = prefix .. target
    while path:find "[^/.]+/%.%./" do path = path:gsub("[^/.]+/%.%./", "", 1) end
    local example = path:match "^%.%./(examples/.*%.lua)$"
    if example then return ("[%s](%s%s)"):format(label, up, example_page(example)) end
    local notebook = path:match "^%.%./(examples/notebooks/.*)%.ipynb$"
    if notebook then return ("[%s](%s%s.md)"):format(label, up, notebook) end
    local document = path:match "^%.%./docs/(.*%.md)$"
    if document then return ("[%s](%s%s)"):format(label, up, document) end
    if path:find "^%.%./" then return label end
  end))
end

local function page(nav, path, indent)
  local text = read("docs/" .. path)
  write(out .. "/docs/" .. path, site_links(text, path:match "^.*/" or ""))
  nav[#nav + 1] = ("%s- %q: %q"):format(indent, title_of(text), path)
end

-- Writes the page of a notebook.
local function notebook(nav, name)
  local path, pictures = "examples/notebooks/" .. name, 0
  local text = notebook_page(read(path .. ".ipynb"), function(source)
    return site_links(source, "../examples/notebooks/", "../../")
  end, function(ending, bytes)
    pictures = pictures + 1
    local file = ("%s-%d.%s"):format(name, pictures, ending)
    write(("%s/docs/examples/notebooks/%s"):format(out, file), bytes)
    return file
  end)
  write(("%s/docs/%s.md"):format(out, path), text)
  nav[#nav + 1] = ("      - %q: %q"):format(title_of(text), path .. ".md")
end

-- The front page: docs/guide/index.md, whose links are from its own folder.
local function front_page()
  local text = read "docs/guide/index.md"
  text = text:gsub("%]%(([%w_%-]+%.md)", "](guide/%1"):gsub("%]%(%.%./", "](")
  write(out .. "/docs/index.md", text)
end

local settings = [[
site_name: Lutra
site_description: Tensors, automatic differentiation and neural networks for Lua
docs_dir: docs
use_directory_urls: false
theme:
  name: material
  custom_dir: %s
  font: false
  features: [navigation.tabs, navigation.top, search.highlight]
  palette: {primary: indigo, accent: indigo}
plugins:
  - search: {separator: '[\s\-.:(){},]+'}
extra: {generator: false}
markdown_extensions:
  - attr_list
  - tables
  - fenced_code
  - codehilite: {guess_lang: false, css_class: highlight}
  - toc: {permalink: true}
nav:
  - Home: index.md
  - Guides:
%s
  - Reference:
%s
]]

assert(os.execute(("mkdir -p '%s/docs' && cp -r docs/images '%s/docs'"):format(out, out)))
local guide_nav, reference_nav = {}, {'    - "All names": "reference/index.md"'}
front_page()
for _, path in ipairs(guides) do page(guide_nav, path, "    ") end
guide_nav[#guide_nav + 1] = '    - "Example notebooks":'
for _, name in ipairs(notebooks) do notebook(guide_nav, name) end
guide_nav[#guide_nav + 1] = '    - "In depth":'
for _, path in ipairs(documents) do page(guide_nav, path, "      ") end

local index, group = {"# Reference", "Every public name, by the page that describes it."}, nil
for _, p in ipairs(reference.pages()) do
  local path = "reference/" .. p.file .. ".md"
  write(out .. "/docs/" .. path, p.text)
  if p.group ~= group then
    group = p.group
    index[#index + 1] = "## " .. group
    reference_nav[#reference_nav + 1] = ("    - %q:"):format(group)
  end
  reference_nav[#reference_nav + 1] = ("      - %q: %q"):format(p.title, path)
  index[#index + 1] = ("* [%s](%s)"):format(markdown.escape(p.title), p.file .. ".md")
end
write(out .. "/docs/reference/index.md", (table.concat(index, "\n\n"):gsub("\n\n%* ", "\n* ")
  :gsub("(\n## [^\n]*)\n%*", "%1\n\n*")) .. "\n")

local theme <close> = assert(io.popen("cd tools/docs/theme && pwd"))
write(out .. "/mkdocs.yml", settings:format(theme:read "l",
  table.concat(guide_nav, "\n"), table.concat(reference_nav, "\n")))
