rockspec_format = "3.0"
package = "lutra"
version = "scm-1"
source = {
  url = "git+https://github.com/lutra/lutra.git",
}
description = {
  summary = "Tensors, automatic differentiation and neural networks",
  detailed = [[
PyTorch's programming model told in Lua 5.4: tensors with views and broadcasting, automatic
differentiation, modules, optimizers and data loaders, on a C11 core with kernels for AVX-512, AVX2
and NEON. Comes with a program, `lutra`, that is a prompt and runs scripts.]],
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
