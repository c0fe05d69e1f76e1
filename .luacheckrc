-- Lua 5.4, no globals of our own; the specs know busted's words.
std = "lua54"
max_line_length = 100
files["tests/spec"] = {std = "lua54+busted"}
files["tests/golden"] = {max_line_length = false} -- values written by tools/
files["**/*.rockspec"] = {std = "rockspec"}
files[".luacheckrc"] = {std = "luacheckrc"}
