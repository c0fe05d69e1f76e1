--- The list of the lint's rules, and what the files that add to it share.

local rule_list = {rules = {}}

--- Adds a rule. check(record, report) calls report(where, count, cost in seconds, message, fix) for
-- each finding; `fix` is more specific than the rule's advice, or nil.
function rule_list.rule(name, title, advice, check)
  table.insert(rule_list.rules, {name = name, title = title, advice = advice, check = check})
end

--- Returns the events that pass a test, grouped by line: a list of {where, ...events} in the order
-- of their first events.
function rule_list.by_line(list, test)
  local groups, by_where = {}, {}
  for _, e in ipairs(list) do
    if e.where and test(e) then
      local group = by_where[e.where]
      if not group then
        group = {where = e.where}
        by_where[e.where], groups[#groups + 1] = group, group
      end
      group[#group + 1] = e
    end
  end
  return groups
end

--- Returns the seconds that the events of a list took.
function rule_list.time_of(list)
  local sum = 0
  for _, e in ipairs(list) do sum = sum + (e.finish - e.begin) * 1e-6 end
  return sum
end

return rule_list
