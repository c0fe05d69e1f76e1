--- The front end of the session: the terminal, or a notebook that is connected to the kernel.
--
-- front.notebook is nil in a terminal. In the kernel (lib/lutra/repl/kernel/) it is an object with
-- these methods, in which `data` is a table of strings by MIME type, `metadata` a table or nil, and
-- `id` the string that names a display which can be updated, or nil:
--
--     notebook:display(data, metadata, id)  shows output
--     notebook:update(data, metadata, id)   replaces the displays of that id
--     notebook:clear(wait)                  removes the output of the cell; wait: when more comes
--     notebook:page(text)                   shows a long text, such as help
--     notebook:next_input(text)             adds a cell with this code below the one that runs
--     notebook:input(prompt, password)      asks the user for a line: returns it, or nil and "eof"
--                                           or "interrupt"

local front = {notebook = nil}

return front
