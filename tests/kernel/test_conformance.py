"""Jupyter's own tests of kernels, jupyter_kernel_test; skipped where it is not installed."""

import json
import os
import sys
import tempfile
import unittest

try:
    import jupyter_kernel_test
except ImportError:
    print("skipped: cannot find jupyter_kernel_test (pip install jupyter_kernel_test)")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

from support import PROGRAM


class LutraKernel(jupyter_kernel_test.KernelTests):
    kernel_name = "lutra"
    language_name = "lua"
    file_extension = ".lua"
    code_hello_world = "print 'hello, world'"
    code_stderr = "io.stderr:write 'error\\n'"
    completion_samples = [
        {"text": "lt.matm", "matches": {"matmul"}},
        {"text": "string.rep", "matches": {"rep"}},
        {"text": "collectgar", "matches": {"collectgarbage"}},
    ]
    complete_code_samples = ["1", "print 'hello'", "function f(x)\n  return x * 2\nend"]
    incomplete_code_samples = ["print([[hello", "function f(x)\n  x = x * 2", "if true then"]
    invalid_code_samples = ["import = 7q", "function() function() end end", "x = = 1"]
    code_page_something = "?lt.matmul"
    code_generate_error = "error 'an error'"
    code_execute_result = [
        {"code": "6 * 7", "result": "42"},
        {"code": "'a' .. 'b'", "result": '"ab"'},
    ]
    code_display_data = [
        {"code": "lt.display('x', {['text/html'] = '<b>x</b>'})", "mime": "text/html"},
        {"code": "lt.display(lt.ones(3, 8, 8), {as = 'image'})", "mime": "image/png"},
    ]
    code_clear_output = "lt.clear_output()"
    code_inspect_sample = "lt.matmul"
    code_history_pattern = "6?*"
    supported_history_operations = ("tail", "range", "search")
    support_iopub_welcome = True


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        spec = os.path.join(folder, "kernels", "lutra")
        os.makedirs(spec)
        with open(os.path.join(spec, "kernel.json"), "w") as file:
            json.dump({"argv": [PROGRAM, "--kernel", "{connection_file}"], "display_name": "Lutra",
                       "language": "lua", "interrupt_mode": "message"}, file)
        os.environ["JUPYTER_PATH"] = folder
        os.environ["XDG_STATE_HOME"] = folder
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(LutraKernel)
        result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(suite)
        bad = len(result.failures) + len(result.errors)
        for test, why in result.skipped:
            print(f"skipped {test}: {why}")
        done = result.testsRun - bad - len(result.skipped)
        print(f"{done} passed, {bad} failed, {len(result.skipped)} skipped", flush=True)
        sys.exit(1 if bad else 0)
