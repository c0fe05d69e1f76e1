-- Counts checks, for the scripts that check sources and documents. `dofile "tests/checks.lua"`,
-- from the repository's root, gives a table:
--
--   check(good, message)   counts; prints the message where it is not good
--   finish()               prints `N passed, N failed, 0 skipped` and ends with the status

local checks, passed, failed = {}, 0, 0

function checks.check(good, message)
  if good then
    passed = passed + 1
  else
    failed = failed + 1
    print("FAILED " .. message)
  end
end

function checks.finish()
  print(("%d passed, %d failed, 0 skipped"):format(passed, failed))
  os.exit(failed == 0, true)
end

return checks
