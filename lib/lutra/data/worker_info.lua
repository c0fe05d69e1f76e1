--- data.get_worker_info: what code that runs in a worker of a DataLoader knows of it.

local worker_info = {current = nil}

--- Returns in a worker of a DataLoader the table {id, num_workers, seed, dataset}: its number from
-- 1 on, the number of workers, a seed of this worker that is new in each pass, and its copy of the
-- dataset; nil in the program.
function worker_info.get() return worker_info.current end

return worker_info
