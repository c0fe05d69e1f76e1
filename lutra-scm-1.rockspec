rockspec_format = "3.0"
package = "lutra"
version = "scm-1"
source = {
  url = "git+https://github.com/lutra/lutra.git",
}
description = {
  summary = "Tensors, automatic differentiation and neural networks",
  detailed = [[
A tensor library for Lua 5.4 with PyTorch's functions and defaults: tensors with views and
broadcasting, automatic differentiation, modules, optimizers and data loaders, on a C11 core with
kernels for AVX-512, AVX2 and NEON. The program `lutra` is an interactive prompt and runs scripts.]],
  license = "MIT",
  labels = {"machine-learning", "tensor", "autograd", "math"},
}
supported_platforms = {"unix"}
dependencies = {
  "lua >= 5.4, < 5.5",
}
build = {
  type = "make",
  build_variables = {
    LUA_INCDIR = "$(LUA_INCDIR)",
  },
  install_variables = {
    PREFIX = "$(PREFIX)",
    BINDIR = "$(BINDIR)",
    LUADIR = "$(LUADIR)",
    LIBDIR = "$(LIBDIR)",
    LUA_INCDIR = "$(LUA_INCDIR)",
  },
}
