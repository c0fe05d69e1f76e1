-- Follows the links inside a built site: every one leads to a file, and to an anchor in it; nothing
-- that a page loads comes from the network. `lua5.4 tests/site_links.lua FOLDER`.

local checks = dofile "tests/checks.lua"
local check = checks.check
local root = assert(arg[1], "usage: lua5.4 tests/site_links.lua FOLDER")

local function read(path)
  local file = io.open(path)
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

local texts = {} -- path -> text, or false
local function text_of(path)
  if texts[path] == nil then texts[path] = read(path) or false end
  return texts[path]
end

local function has_anchor(text, anchor)
  return text:find(('id="%s"'):format(anchor), 1, true)
end

-- "a/../b" -> "b"
local function normal(path)
  repeat
    local count
    path, count = path:gsub("[^/]+/%.%./", "", 1)
  until count == 0
  return (path:gsub("/%./", "/"))
end

local listing <close> = assert(io.popen(("find '%s' -name '*.html' | sort"):format(root)))
local pages, links = 0, 0
for path in listing:lines() do
  local html, folder = text_of(path), path:match "^(.*/)"
  pages = pages + 1
  local good = true
  for attribute, target in html:gmatch '%s(%l+)="([^"]*)"' do
    local is_link = attribute == "href" or attribute == "src"
    local outside = target:find "^%a[%w+.-]*:" or target:find "^//"
    if is_link and outside and (attribute == "src" or html:find('<link[^>]*' .. target:gsub("%p",
        "%%%0"))) then
      good = false
      print(("%s loads %s"):format(path, target))
    elseif is_link and not outside and not path:find "404.html$" then
      links = links + 1
      local file, anchor = target:gsub("%?.*$", ""):match "^([^#]*)#?(.*)$"
      local text = text_of(file == "" and path or normal(folder .. file:gsub("%%20", " ")))
      if not text or anchor ~= "" and not has_anchor(text, anchor) then
        good = false
        print(("%s: the link %s leads nowhere"):format(path, target))
      end
    end
  end
  check(good, path)
end
check(pages > 50 and links > 1000, ("only %d pages and %d links found"):format(pages, links))

checks.finish()
