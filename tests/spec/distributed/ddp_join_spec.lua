--- DistributedDataParallel:join: ranks with different numbers of batches.

local check = require("ddp_support").check

describe("DistributedDataParallel:join", function()
  it("trains on different numbers of batches", function()
    check(2, [[
      for _, by_all in ipairs {true, false} do
        for _, options in ipairs {{}, {bucket_cap_mb = 1e-6}, {find_unused_parameters = true}} do
          local whole, part = mlp(), mlp()
          local model = with(part, options)
          local a = optim.SGD(whole:parameters(), {lr = 1 / 8})
          local b = optim.SGD(model:parameters(), {lr = 1 / 8})
          local function batch(net, k)
            local x = integers(k, 2, {4, 4})
            return net(x):sum() / 4
          end
          -- Rank 0 has one batch, rank 1 has three.
          for step = 1, 3 do
            a:zero_grad()
            if step == 1 then (batch(whole, 1) / 2):backward() end
            local divisor = (step == 1 or by_all) and 2 or 1;
            (batch(whole, 10 + step) / divisor):backward()
            a:step()
          end
          local result = model:join(function()
            for step = 1, rank == 0 and 1 or 3 do
              b:zero_grad()
              batch(model, rank * 10 + step):backward()
              b:step()
            end
            return "result"
          end, {divide_by_initial_world_size = by_all})
          assert(result == "result")
          for name, p in whole:named_parameters() do
            assert(lt.equal(p, part:get_parameter(name)), name .. " on rank " .. rank)
          end
        end
      end]])
  end)

  it("with a rank without batches, buffers, and early termination as an error", function()
    check(2, [[
      local net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
      local model = DDP(net)
      model:join(function()
        for _ = 1, rank == 0 and 0 or 2 do model(lt.ones(4, 4)):sum():backward() end
      end)
      assert(net[2].num_batches_tracked:item() == 2)
      local function uneven()
        for _ = 1, rank == 0 and 1 or 2 do model(lt.ones(4, 4)):sum():backward() end
      end
      fails("expected as many batches on all ranks, got fewer on rank 0", model.join, model, uneven,
        {throw_on_early_termination = true})
      assert(model:join(function() return 7 end, {enable = false}) == 7)]])
  end)
end)
