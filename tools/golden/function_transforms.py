"""Values of torch.func and torch.autograd.functional on small functions: each case is an expression in Python and one
in Lua, which gives a tensor or a list of tensors. Inputs: x {3}, y {3}, a {2, 3}, float64."""

import torch
from torch import autograd, func

A = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], dtype=torch.float64)
X = torch.tensor([0.3, -1.2, 2.0], dtype=torch.float64)
Y = torch.tensor([1.0, 0.5, -2.0], dtype=torch.float64)


def f(x):
    return (x.sin() * x).sum()


def g(x, y):
    return (x * x * y).sum() + (x * y.exp()).sum()


def h(x):
    return (A * x).tanh()


af = autograd.functional
CASES = [
    ("fn.grad(f)(x)", func.grad(f)(X)),
    ("fn.grad(function(t) return fn.grad(f)(t):sum() end)(x)", func.grad(lambda t: func.grad(f)(t).sum())(X)),
    ("fn.grad(g, {argnums = 2})(x, y)", func.grad(g, argnums=1)(X, Y)),
    ("fn.grad(g, {argnums = {1, 2}})(x, y)", func.grad(g, argnums=(0, 1))(X, Y)),
    ("{fn.grad_and_value(f)(x)}", func.grad_and_value(f)(X)),
    ("{(fn.vjp(h, x))}", (func.vjp(h, X)[0],)),
    ("select(2, fn.vjp(h, x))(a)", func.vjp(h, X)[1](A)[0]),
    ("{select(2, fn.vjp(g, x, y))(lt.tensor(2., {dtype = 'float64'}))}",
     func.vjp(g, X, Y)[1](torch.tensor(2.0, dtype=torch.float64))),
    ("{fn.jvp(h, {x}, {y})}", func.jvp(h, (X,), (Y,))),
    ("{fn.jvp(g, {x, y}, {y, x})}", func.jvp(g, (X, Y), (Y, X))),
    ("select(2, fn.linearize(h, x))(y)", func.linearize(h, X)[1](Y)),
    ("fn.jacrev(h)(x)", func.jacrev(h)(X)),
    ("fn.jacfwd(h)(x)", func.jacfwd(h)(X)),
    ("fn.jacrev(g, {argnums = {1, 2}})(x, y)", func.jacrev(g, argnums=(0, 1))(X, Y)),
    ("fn.hessian(f)(x)", func.hessian(f)(X)),
    ("fn.vmap(function(t) return t:sin() * t end)(a)", func.vmap(lambda t: t.sin() * t)(A)),
    ("fn.vmap(lt.dot, {in_dims = {1, false}})(a, x)", func.vmap(torch.dot, in_dims=(0, None))(A, X)),
    ("fn.vmap(function(t) return t * 2 end, {in_dims = 2, out_dims = 2})(a)",
     func.vmap(lambda t: t * 2, in_dims=1, out_dims=1)(A)),
    ("fn.vmap(function(t) return t:sum() end, {in_dims = -1})(a)", func.vmap(lambda t: t.sum(), in_dims=-1)(A)),
    ("{fn.vmap(function(t) return t:sum(), t * t end, {out_dims = {1, 2}})(a)}",
     func.vmap(lambda t: (t.sum(), t * t), out_dims=(0, 1))(A)),
    ("fn.vmap(fn.grad(f))(a)", func.vmap(func.grad(f))(A)),
    ("fn.vmap(fn.vmap(function(t) return t:exp() end))(a)", func.vmap(func.vmap(torch.exp))(A)),
    ("af.jacobian(h, x)", af.jacobian(h, X)),
    ("af.jacobian(h, x, {strategy = 'forward-mode'})", af.jacobian(h, X)),
    ("af.jacobian(g, {x, y})", af.jacobian(g, (X, Y))),
    ("af.hessian(f, x)", af.hessian(f, X)),
    ("af.hessian(g, {x, y})[1]", af.hessian(g, (X, Y))[0]),
    ("af.hessian(g, {x, y})[2]", af.hessian(g, (X, Y))[1]),
    ("{af.vjp(h, x, a)}", af.vjp(h, X, A)),
    ("{af.jvp(h, x, y)}", af.jvp(h, X, Y)),
    ("{af.vhp(f, x, y)}", af.vhp(f, X, Y)),
    ("{af.hvp(f, x, y)}", af.hvp(f, X, Y)),
    ("select(2, af.hvp(g, {x, y}, {y, x}))", af.hvp(g, (X, Y), (Y, X))[1]),
    ("select(2, af.vhp(g, {x, y}, {y, x}))", af.vhp(g, (X, Y), (Y, X))[1]),
]


def values_of(result):
    if isinstance(result, torch.Tensor):
        numbers = ", ".join(repr(v) for v in result.reshape(-1).tolist())
        return "{shape = {%s}, %s}" % (", ".join(map(str, result.shape)), numbers)
    return "{list = {%s}}" % ", ".join(values_of(r) for r in result)


def cases_of(_):
    return "\n".join("  {[=[%s]=],\n    %s}," % (code, values_of(result)) for code, result in CASES)
