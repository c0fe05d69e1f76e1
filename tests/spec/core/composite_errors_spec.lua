--- Errors of composites start with the name of a function that the user can call, not with that of
-- an internal op.

local calls = require "op_calls_support"

local lt = require "lutra"
local composites = require "lutra.internal.composites"

local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  return not ok and (tostring(message):gsub("^[^\n]-%.lua:%d+: ", "")) or nil
end

-- ---- single messages

local vector, whole = lt.ones(3), lt.ones(2, 2, {dtype = "int64"})
local complex = lt.ones(2, {dtype = "complex64"})
local MATRIX = "expected a matrix or a batch of matrices for argument '%s', got shape {3}"
local DTYPE = 'expected dtype "float32", "float64", "complex64" or "complex128" for argument '
  .. "'%s', got \"int64\""

describe("a composite of linear algebra", function()
  for name, argument in pairs{pinv = "A", matrix_rank = "A", cond = "A", polar = "A", svd = "A",
    svdvals = "A", eigh = "A", eigvalsh = "A", eig = "A", eigvals = "A", matrix_sqrth = "A",
    inv = "A", inv_ex = "A", cholesky_ex = "A", lu = "A", lu_factor = "A", lu_factor_ex = "A",
    ldl_factor = "A", ldl_factor_ex = "A"} do
    it(name .. " names itself", function()
      assert.equal(name .. ": " .. MATRIX:format(argument), message_of(lt.linalg[name], vector))
      assert.equal(name .. ": " .. DTYPE:format(argument), message_of(lt.linalg[name], whole))
    end)
  end

  for _, name in ipairs{"inverse", "pinverse", "cholesky", "cholesky_inverse", "logdet", "lu",
    "svd"} do
    it("lt." .. name .. " names itself", function()
      assert.equal(name .. ": " .. MATRIX:format "self", message_of(lt[name], vector))
      assert.equal(name .. ": " .. DTYPE:format "self", message_of(lt[name], whole))
    end)
  end
end)

local CASES = {
  {'frexp: expected a float dtype for argument \'self\', got "int64"', lt.frexp, whole},
  {'take: expected an integer dtype for argument \'index\', got "float32"', lt.take, whole, vector},
  {"take: cannot index a tensor of shape {0}: it has no elements", lt.take, lt.ones(0),
    lt.tensor{1}},
  {'legendre_polynomial_p: expected a real tensor for argument \'x\', got "complex64"',
    lt.special.legendre_polynomial_p, complex, 2},
  {"hermite_polynomial_h: cannot broadcast the shapes {3} and {2, 2} together",
    lt.special.hermite_polynomial_h, vector, whole},
  {"special.zeta: cannot broadcast the shapes {3} and {2, 2} together: at dim -1 the sizes 3 and 2 "
    .. "differ, and neither is 1", lt.special.zeta, vector, lt.ones(2, 2)},
  {'group_norm: expected a float dtype for argument \'input\', got "int64"', lt.group_norm, whole,
    1},
  {'instance_norm: expected a float dtype for argument \'input\', got "int64"', lt.F.instance_norm,
    whole},
  {'pdist: expected a float dtype for argument \'input\', got "int64"', lt.pdist, whole},
  {'bucketize: expected a real tensor for argument \'self\', got "complex64"', lt.bucketize,
    complex, vector},
  {"sum: expected a tensor for argument 'input', got the string \"x\"", lt.masked.sum, "x"},
}

describe("a composite", function()
  for _, case in ipairs(CASES) do
    it("says " .. case[1], function()
      assert.equal(case[1], message_of(case[2], case[3], case[4]))
    end)
  end
end)

-- ---- every function

local internal, public = {}, {}
for _, op in ipairs(composites.ops()) do
  local hidden = op.name:match "^_(.*)"
  if hidden then internal[hidden] = true else public[op.name] = op end
end

internal.index = nil -- the name of x[...] in errors

-- Returns tensors of several shapes and dtypes, most of them wrong for most ops.
local function samples()
  local list = {}
  for _, dtype in ipairs{"float32", "int64", "bool", "complex64"} do
    for _, shape in ipairs{{}, {3}, {0}, {2, 3}, {3, 3}, {2, 3, 3}, {1, 2, 3, 4}} do
      list[#list + 1] = lt.ones(shape, {dtype = dtype})
    end
  end
  return list
end

describe("no error of a public function names an internal op:", function()
  for name, op in pairs(public) do
    it(name, function()
      -- new samples, because ops in place change them
      local f, tensors = calls.function_of(op), samples()
      for i, tensor in ipairs(f and tensors or {}) do
        local given = calls.arguments(op, 2, function(k)
          return k == 1 and tensor or tensors[(i + 3 * k) % #tensors + 1]
        end)
        local title = (message_of(f, table.unpack(given)) or ""):match "^([%w_.]+):"
        local wrong = title and (internal[title] and not public[title]
          or title:find "^linalg_" or title:find "^special_" or title:find "^_")
        assert.is_falsy(wrong, ("%s: the error names %s"):format(name, title))
      end
    end)
  end
end)

describe("a loss of shapes that cannot be broadcast names itself:", function()
  for _, name in ipairs{"huber_loss", "smooth_l1_loss", "l1_loss", "mse_loss", "kl_div",
      "poisson_nll_loss", "soft_margin_loss", "hinge_embedding_loss",
      "multilabel_soft_margin_loss"} do
    it(name, function()
      local ok, message = pcall(lt.nn.functional[name], lt.ones(2, 3), lt.ones(4))
      assert.is_false(ok)
      assert.matches(name .. ": cannot broadcast the shapes {2, 3} and {4} together", message, 1,
        true)
    end)
  end
end)
