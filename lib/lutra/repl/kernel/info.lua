--- kernel_info_request: what the kernel is.

local info = {}

local language = {
  name = "lua",
  version = _VERSION:match "%d+%.%d+",
  mimetype = "text/x-lua",
  file_extension = ".lua",
  pygments_lexer = "lua",
  codemirror_mode = "lua",
  nbconvert_exporter = "script",
}

local function banner()
  local ok, core = pcall(require, "lutra.core")
  local version = ok and core._VERSION or "?"
  return version, ("Lutra %s (%s). :help for help."):format(version, _VERSION)
end

--- Returns the content of the reply. Its language_info is metadata of notebooks as well.
function info.kernel_info_request()
  local version, text = banner()
  return {
    status = "ok",
    protocol_version = "5.5",
    implementation = "lutra",
    implementation_version = version,
    language_info = language,
    banner = text,
    debugger = true,
    supported_features = {"debugger", "iopub_welcome"},
    help_links = {{text = "Lua 5.4 Reference Manual", url = "https://www.lua.org/manual/5.4/"}},
  }
end

return info
