-- What busted prints for tests/run: a line per spec file, each failure in full as soon as it is
-- known (a crash later loses nothing), and at the end `N passed, N failed, N skipped`.

return function()
  local busted = require "busted"
  local handler = require "busted.outputHandlers.base" ()
  local counts = {success = 0, failure = 0, error = 0, pending = 0}
  local file -- {name, passed, failed, skipped, started} of the spec file that runs now

  local function text(message)
    if type(message) == "string" then return message end
    if message == nil then return "nil error" end
    local own = type(message) == "table" and getmetatable(message)
    if own and own.__tostring then return tostring(message) end
    return require "pl.pretty".write(message)
  end

  local function indented(lines, by)
    return (lines:gsub("%s*$", ""):gsub("\n", "\n" .. by))
  end

  local function tell(kind, element, message, trace)
    io.write(kind, " ", handler.getFullName(element), "\n  ", indented(text(message), "  "), "\n")
    if trace and trace.traceback then
      local lines = trace.traceback:gsub("^%s*stack traceback:%s*", ""):gsub("\n%s*", "\n")
      io.write("    ", indented(lines, "    "), "\n")
    end
    io.flush()
  end

  -- A failure outside a test (in a file's or a describe's body) is one failed test.
  local function outside(kind)
    return function(element, _, message, trace)
      if element.descriptor == "it" then return nil, true end
      counts.error = counts.error + 1
      if file then file.failed = file.failed + 1 end
      tell(kind, element, message, trace)
      return nil, true
    end
  end
  busted.subscribe({"failure"}, outside "FAILED")
  busted.subscribe({"error"}, outside "ERROR")
  busted.subscribe({"failure", "it"}, function(element, _, message, trace)
    tell("FAILED", element, message, trace)
    return nil, true
  end)
  busted.subscribe({"error", "it"}, function(element, _, message, trace)
    tell("ERROR", element, message, trace)
    return nil, true
  end)
  busted.subscribe({"pending"}, function(element, _, message)
    local why = message and ": " .. text(message) or ""
    io.write("skipped ", handler.getFullName(element), why, "\n")
    return nil, true
  end)

  busted.subscribe({"file", "start"}, function(element)
    file = {name = element.name, passed = 0, failed = 0, skipped = 0, started = os.time()}
    return nil, true
  end)
  busted.subscribe({"test", "end"}, function(_, _, status)
    counts[status] = counts[status] + 1
    if file then
      local field = ({success = "passed", pending = "skipped"})[status] or "failed"
      file[field] = file[field] + 1
    end
    return nil, true
  end)
  busted.subscribe({"file", "end"}, function()
    local seconds = os.difftime(os.time(), file.started)
    io.write(("  %-44s %4d passed%s%s%s\n"):format(file.name, file.passed,
      file.failed > 0 and (", %d FAILED"):format(file.failed) or "",
      file.skipped > 0 and (", %d skipped"):format(file.skipped) or "",
      seconds >= 1 and (" (%d s)"):format(seconds) or ""))
    io.flush()
    file = nil
    return nil, true
  end)
  busted.subscribe({"suite", "end"}, function()
    io.write(("%d passed, %d failed, %d skipped\n"):format(
      counts.success, counts.failure + counts.error, counts.pending))
    io.flush()
    return nil, true
  end)

  return handler
end
