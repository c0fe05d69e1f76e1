"""Drives JupyterLab and Notebook 7 in headless Chromium with the kernel, as a user does.

    tests/kernel/browser.py [--program build/lutra] [--screenshots FOLDER] [NAME...]

Runs all checks, or those whose names contain a NAME. Ends with the line `N passed, N failed, N
skipped`. It needs jupyterlab and playwright in this Python, or in LUTRA_JUPYTER_PYTHON, and Chromium
(LUTRA_CHROMIUM, by default /usr/bin/chromium); without one of them it is skipped. It downloads
nothing.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
CHROMIUM = os.environ.get("LUTRA_CHROMIUM", "/usr/bin/chromium")
SECONDS = 30  # of waiting for one state of the page


def skip(reason):
    print("skipped the browser:", reason)
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)


def find_packages():
    """Imports what the checks need, in another Python when this one has it not."""
    try:
        import jupyterlab  # noqa: F401
        import playwright  # noqa: F401
    except ImportError as error:
        other = os.environ.get("LUTRA_JUPYTER_PYTHON")
        if other and os.path.abspath(other) != os.path.abspath(sys.executable):
            os.execv(other, [other, *sys.argv])
        skip("cannot import %s (pip install jupyterlab playwright)" % error.name)
    if not os.access(CHROMIUM, os.X_OK):
        skip("cannot find %s (apt install chromium)" % CHROMIUM)


def notebook(*cells):
    """Returns the text of a notebook with these cells of code."""
    return json.dumps({
        "nbformat": 4, "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "lutra", "display_name": "Lutra", "language": "lua"}},
        "cells": [{"cell_type": "code", "id": "cell%d" % i, "metadata": {}, "outputs": [],
                   "execution_count": None, "source": source} for i, source in enumerate(cells)]})


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A Jupyter server with its own folders, in which only this kernel is installed."""

    def __init__(self, program):
        self.home = tempfile.mkdtemp(prefix="lutra-browser-")
        self.files = os.path.join(self.home, "files")
        os.mkdir(self.files)
        prefix = os.path.join(self.home, "prefix")
        subprocess.run([program, "--kernel", "install", "--prefix", prefix], check=True,
                       stdout=subprocess.DEVNULL)
        settings = os.path.join(self.home, "settings", "@jupyterlab", "apputils-extension")
        os.makedirs(settings)
        with open(os.path.join(settings, "notification.jupyterlab-settings"), "w") as f:
            json.dump({"fetchNews": "false", "checkForUpdates": False}, f)
        self.port = free_port()
        self.url = "http://127.0.0.1:%d" % self.port
        environment = dict(
            os.environ, HOME=self.home, JUPYTER_PATH=os.path.join(prefix, "share", "jupyter"),
            JUPYTER_DATA_DIR=os.path.join(self.home, "data"), JUPYTER_PREFER_ENV_PATH="0",
            JUPYTER_CONFIG_DIR=os.path.join(self.home, "config"),
            JUPYTER_RUNTIME_DIR=os.path.join(self.home, "runtime"),
            JUPYTERLAB_SETTINGS_DIR=os.path.join(self.home, "settings"),
            XDG_STATE_HOME=self.home, XDG_CONFIG_HOME=self.home, LC_ALL="C.UTF-8")
        self.environment = environment
        self.log = open(os.path.join(self.home, "log"), "w")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root",
             "--port=%d" % self.port, "--ip=127.0.0.1", "--IdentityProvider.token=",
             "--ServerApp.root_dir=" + self.files, "--LabApp.expose_app_in_browser=True",
             "--JupyterNotebookApp.expose_app_in_browser=True", "--ServerApp.disable_check_xsrf=True"],
            stdout=self.log, stderr=self.log, env=environment, cwd=self.files)
        self.wait()

    def wait(self):
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            try:
                urllib.request.urlopen(self.url + "/api/status", timeout=2)
                return
            except OSError:
                time.sleep(0.2)
        raise RuntimeError("the server did not start: " + self.log.name)

    def write(self, name, text):
        with open(os.path.join(self.files, name), "w") as f:
            f.write(text)

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.log.close()
        shutil.rmtree(self.home, ignore_errors=True)


class Lab:
    """A page with a notebook. Cells are counted from 0."""

    def __init__(self, checks, name, *cells, path="/lab/tree/", text=None):
        self.checks, self.name = checks, name
        checks.server.write(name + ".ipynb", text or notebook(*cells))
        self.page = checks.browser.new_page(viewport={"width": 1280, "height": 900})
        self.page.set_default_timeout(SECONDS * 1000)
        self.page.goto(checks.server.url + path + name + ".ipynb?reset")
        self.page.wait_for_selector(".jp-Notebook .jp-CodeCell")
        self.page.wait_for_function("""() => {
          const context = window.jupyterapp?.shell.currentWidget?.sessionContext
          return context?.isReady && context.session?.kernel?.status === 'idle'
        }""")
        self.wait_idle()

    def command(self, name, **arguments):
        """Runs a command of JupyterLab, as its menus do."""
        self.page.evaluate("([name, a]) => { window.jupyterapp.commands.execute(name, a) }",
                           [name, arguments])

    def wait_idle(self, seconds=SECONDS):
        self.page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]",
                                    state="attached", timeout=seconds * 1000)

    def wait_for(self, condition, what, seconds=SECONDS):
        """Waits until condition() is true."""
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until:
                raise AssertionError("expected " + what)
            time.sleep(0.1)

    def cell(self, index):
        return self.page.locator(".jp-Notebook .jp-CodeCell").nth(index)

    def editor(self, index):
        return self.cell(index).locator(".cm-content")

    def output(self, index):
        return self.cell(index).locator(".jp-OutputArea").inner_text()

    def prompt(self, index):
        return self.cell(index).locator(".jp-InputPrompt").first.inner_text().strip()

    def run(self, index, wait=True):
        """Runs a cell by Ctrl+Enter."""
        self.editor(index).click()
        self.page.keyboard.press("Control+Enter")
        if wait:
            self.wait_done(index)

    def wait_done(self, index, seconds=SECONDS):
        """Waits until the cell has a number."""
        self.wait_for(lambda: self.prompt(index)[1:-2].isdigit(), "a number of cell %d" % index,
                      seconds)

    def type(self, index, text):
        """Replaces the text of a cell by typing."""
        self.editor(index).click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.press("Delete")
        self.page.keyboard.type(text)

    def source(self, index):
        return "\n".join(self.editor(index).locator(".cm-line").all_inner_texts())

    def shot(self, suffix=""):
        if self.checks.screenshots:
            self.page.screenshot(path=os.path.join(self.checks.screenshots,
                                                   self.name + suffix + ".png"))

    def close(self):
        self.page.close()


def contains(text, *parts):
    for part in parts:
        assert part in text, "%r is missing in:\n%s" % (part, text)


TOUR = [
    'print("hello")\nlt.arange(6):view(2, 3)',
    "local net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))\nnet",
    'local x = lt.linspace(0, 10, 50)\nprint(x:mean())\nerror("an error")',
]

LOOP = "local total = 0\nfor i = 1, 5 do\n  local square = i * i\n  total = total + square\nend\ntotal"

VALUES = """local net = nn.Linear(3, 2)
local options = {rate = 0.1, names = {"a", "b"}}
local function step(n)
  local x = lt.ones{1, 3} * n
  local same = options
  local text = "some text"
  local y = net(x)
  return y
end
step(2)
last = 1"""


class Checks:
    """The checks: methods check_*."""

    def __init__(self, server, browser, screenshots):
        self.server, self.browser, self.screenshots = server, browser, screenshots

    def open(self, name, *cells, **options):
        return Lab(self, name, *cells, **options)

    def check_run_all(self):
        lab = self.open("run-all", *TOUR)
        lab.command("notebook:run-all-cells")
        lab.wait_done(2)
        lab.wait_idle()
        contains(lab.output(0), "hello")
        contains(lab.cell(0).locator(".jp-RenderedHTML, .jp-RenderedText").last.inner_text(), "5")
        contains(lab.output(1), "Linear")
        contains(lab.output(2), "an error")
        lab.shot()
        lab.command("apputils:change-theme", theme="JupyterLab Dark")
        lab.page.wait_for_selector("body[data-jp-theme-light=false]", state="attached")
        lab.page.wait_for_timeout(500)
        lab.shot("-dark")
        lab.command("apputils:change-theme", theme="JupyterLab Light")
        lab.page.wait_for_selector("body[data-jp-theme-light=true]", state="attached")
        lab.close()

    def check_tour(self):
        path = os.path.join(ROOT, "examples", "notebooks", "tour.ipynb")
        if not os.path.exists(path):
            return "examples/notebooks/tour.ipynb does not exist"
        with open(path) as f:
            text = f.read()
        count = sum(cell["cell_type"] == "code" for cell in json.loads(text)["cells"])
        lab = self.open("tour", text=text)
        lab.command("notebook:run-all-cells")
        lab.page.wait_for_timeout(1000)
        lab.wait_idle()
        lab.page.wait_for_timeout(1000)
        lab.wait_idle()
        model = lab.page.evaluate("""() => {
          const cells = window.jupyterapp.shell.currentWidget.content.model.cells
          return Array.from({length: cells.length}, (_, i) => cells.get(i).toJSON())
        }""")
        code = [cell for cell in model if cell["cell_type"] == "code" and cell["source"].strip()]
        assert count and all(cell["execution_count"] for cell in code), "a cell did not run"
        plain = [cell for cell in code
                 if "raises-exception" not in cell["metadata"].get("tags", [])]
        errors = [o for cell in plain for o in cell["outputs"] if o["output_type"] == "error"]
        assert not errors, errors[0]
        lab.shot()
        for position in range(1, 6):
            lab.page.evaluate("""(part) => {
              const area = document.querySelector('.jp-WindowedPanel-outer')
              area.scrollTop = part * area.scrollHeight
            }""", position / 6)
            lab.page.wait_for_timeout(400)
            lab.shot("-%d" % position)
        lab.close()

    def check_complete(self):
        lab = self.open("complete", "lt.zeros{2}", "")
        lab.run(0)
        lab.type(1, "lt.matm")
        lab.page.keyboard.press("Tab")
        lab.wait_for(lambda: lab.source(1) == "lt.matmul"
                     or lab.page.locator(".jp-Completer:visible").count() > 0, "a completion")
        lab.shot()
        if lab.source(1) != "lt.matmul":
            lab.page.keyboard.press("Enter")
        lab.wait_for(lambda: lab.source(1) == "lt.matmul", "lt.matmul, got " + lab.source(1))
        lab.type(1, "lt.ar")
        lab.page.keyboard.press("Tab")
        lab.page.wait_for_selector(".jp-Completer .jp-Completer-item")
        contains(lab.page.locator(".jp-Completer").inner_text(), "arange", "argmax")
        lab.page.wait_for_timeout(300)
        lab.shot("-list")
        lab.page.keyboard.press("Escape")
        lab.close()

    def check_tooltip(self):
        lab = self.open("tooltip", "lt.zeros{2}", "")
        lab.run(0)
        lab.type(1, "lt.softmax(")
        lab.page.keyboard.press("Shift+Tab")
        tooltip = lab.page.wait_for_selector(".jp-Tooltip")
        contains(tooltip.inner_text(), "softmax")
        lab.page.wait_for_timeout(300)
        lab.shot()
        lab.close()

    def check_interrupt(self):
        lab = self.open("interrupt", "while true do end", "1 + 1")
        lab.run(0, wait=False)
        lab.page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=busy]",
                                   state="attached")
        lab.page.locator('[data-command="notebook:interrupt-kernel"]').first.click()
        lab.wait_done(0, 10)
        contains(lab.output(0), "interrupted")
        lab.run(1)
        contains(lab.output(1), "2")
        lab.shot()
        lab.close()

    def check_restart(self):
        lab = self.open("restart", "kept = 5", "kept")
        lab.run(0)
        lab.page.locator('[data-command="notebook:restart-kernel"]').first.click()
        lab.page.locator(".jp-Dialog .jp-mod-accept").click()
        lab.page.wait_for_timeout(500)
        lab.wait_idle()
        lab.run(1)
        lab.wait_for(lambda: "nil" in lab.output(1) or "kept" in lab.output(1), "nil")
        assert "5" not in lab.output(1), lab.output(1)
        assert lab.prompt(1) == "[1]:", lab.prompt(1)
        lab.close()

    def check_editor(self):
        lab = self.open("editor", 'local function f(x)\n  return "text" .. 1 -- a comment\nend', "f(1)")
        lab.run(0)  # the kernel reports the language
        colours = lab.editor(0).evaluate("""(node) => {
          const found = {}
          for (const span of node.querySelectorAll('.cm-line span'))
            found[span.textContent] = getComputedStyle(span).color
          return found
        }""")
        for token in ("local", "return", '"text"', "-- a comment"):
            assert token in colours, "%s is not highlighted: %s" % (token, colours)
        assert colours["local"] != colours['"text"'] != colours["-- a comment"], colours
        lab.type(1, "if f then\n")
        lab.page.keyboard.type("f(2)")
        line = lab.source(1).split("\n")[1]
        lab.shot()
        assert line.startswith("  ") and line.strip() == "f(2)", repr(lab.source(1))
        lab.page.keyboard.type("\nend")
        assert lab.source(1).split("\n")[2] == "end", repr(lab.source(1))
        lab.close()

    def check_burst(self):
        lab = self.open("burst", "for i = 1, 100000 do print(i) end\nprint 'done'")
        started = time.monotonic()
        lab.run(0, wait=False)
        slowest = 0
        while lab.prompt(0)[1:-2] != "1":
            before = time.monotonic()
            lab.page.evaluate("1 + 1")
            slowest = max(slowest, time.monotonic() - before)
            assert before - started < 120, "it did not end"
            time.sleep(0.05)
        lab.wait_idle()
        seconds = time.monotonic() - started
        text = lab.page.evaluate("""() => window.jupyterapp.shell.currentWidget.content.widgets[0]
          .model.outputs.toJSON().map(o => [].concat(o.text).join('')).join('')""")
        expected = "".join("%d\n" % i for i in range(1, 100001)) + "done\n"
        assert text == expected, "%d of %d bytes arrived" % (len(text), len(expected))
        print("  100,000 lines in %.1f s; the page answered within %.2f s" % (seconds, slowest))
        assert slowest < 5, "the page did not answer for %.1f s" % slowest
        lab.shot()
        lab.close()

    def press(self, lab, command):
        """Presses a button of the debugger."""
        lab.page.locator('jp-button[data-command="%s"], button[data-command="%s"]'
                         % (command, command)).first.click()

    def toggle_debugger(self, lab):
        lab.page.locator(".jp-DebuggerBugButton button, .jp-DebuggerBugButton").first.click()

    def start_debugger(self, lab, line):
        """Starts the debugger and sets a breakpoint in a line of the first cell by a click."""
        started = lab.page.locator("[data-jp-debugger=true]")
        for _ in range(10):  # the button ignores a click while the notebook gets its focus
            self.toggle_debugger(lab)
            lab.page.wait_for_timeout(1500)
            if started.count():
                break
        assert started.count(), "the debugger did not start"
        lab.page.wait_for_selector(".jp-DebuggerCallstack", state="attached")
        gutter = lab.cell(0).locator(".cm-breakpoint-gutter .cm-gutterElement")
        lab.wait_for(lambda: gutter.count() >= line, "a column for breakpoints")
        box = lab.cell(0).locator(".cm-line").nth(line - 1).bounding_box()
        column = gutter.first.bounding_box()
        lab.page.mouse.click(column["x"] + column["width"] / 2, box["y"] + box["height"] / 2)
        lab.page.wait_for_selector(".jp-DebuggerBreakpoint", state="attached")

    def stopped_at(self, lab, text, index=0):
        """Waits until the line with the text is marked as that of the stop."""
        highlight = lab.cell(index).locator(".jp-DebuggerEditor-highlight")
        lab.wait_for(lambda: highlight.count() == 1 and text in highlight.inner_text(),
                     "a stop at %r" % text)

    def continue_to_end(self, lab, index):
        """Continues until the cell has run; the button ignores a click while a stop is shown."""
        for _ in range(10):
            self.press(lab, "debugger:continue")
            lab.page.wait_for_timeout(1000)
            if lab.prompt(index)[1:-2].isdigit():
                return
        raise AssertionError("the cell did not end")

    def check_debugger(self):
        lab = self.open("debugger", LOOP, "return 1")
        page = lab.page
        self.start_debugger(lab, 4)
        lab.shot("-breakpoint")
        lab.run(0, wait=False)
        page.wait_for_selector(".jp-DebuggerCallstackFrame")
        self.stopped_at(lab, "total + square")
        lab.wait_for(lambda: "cell" in page.locator(".jp-DebuggerCallstack").inner_text(),
                     "the frame of the cell")
        variables = page.locator(".jp-DebuggerVariables")
        lab.wait_for(lambda: "square" in variables.inner_text(), "the variables")
        contains(variables.inner_text(), "total", "square")
        lab.shot("-stopped")
        self.press(lab, "debugger:next")
        self.stopped_at(lab, "for i")
        self.press(lab, "debugger:stepIn")
        self.stopped_at(lab, "local square")
        self.press(lab, "debugger:continue")
        self.stopped_at(lab, "total + square")
        page.locator(".jp-DebuggerBreakpoints .jp-DebuggerBreakpoint-marker, "
                     ".jp-DebuggerBreakpoint").first.wait_for(state="attached")
        # Removing the breakpoint by a click lets the program end.
        box = lab.cell(0).locator(".cm-line").nth(3).bounding_box()
        column = lab.cell(0).locator(".cm-breakpoint-gutter .cm-gutterElement").first.bounding_box()
        page.mouse.click(column["x"] + column["width"] / 2, box["y"] + box["height"] / 2)
        lab.wait_for(lambda: page.locator(".jp-DebuggerBreakpoint").count() == 0, "no breakpoint")
        self.continue_to_end(lab, 0)
        contains(lab.output(0), "55")
        lab.wait_for(lambda: page.locator(".jp-DebuggerCallstackFrame").count() == 0, "no frames")
        lab.shot("-done")
        self.toggle_debugger(lab)
        lab.close()

    def check_debugger_values(self):
        lab = self.open("values", VALUES, "error 'boom'", "lt.breakpoint()\n'behind'")
        page = lab.page
        self.start_debugger(lab, 7)
        lab.run(0, wait=False)
        self.stopped_at(lab, "local y = net(x)")
        frames = page.locator(".jp-DebuggerCallstackFrame")
        contains(frames.first.inner_text(), "function 'step'")
        assert frames.count() == 2, frames.all_inner_texts()
        contains(frames.first.inner_text(), "Cell [*]:7")
        variables = page.locator(".jp-DebuggerVariables")
        lab.wait_for(lambda: "tensor {1, 3} float32" in variables.inner_text(), "the tensor")
        item = page.locator("jp-tree-item, .jp-TreeItem").filter(has_text="same").first
        item.locator(".jp-DebuggerVariables-name").first.click()
        lab.wait_for(lambda: "rate" in variables.inner_text(), "the fields of a table")
        lab.shot()
        x = page.locator(".jp-DebuggerVariables-name").get_by_text("x", exact=True)
        x.hover()
        page.locator(".jp-DebuggerVariables-renderVariable").first.click()
        lab.wait_for(lambda: page.locator(".jp-RenderedHTML table").count() > 0,
                     "the table of the tensor")
        lab.shot("-rich")
        page.locator(".lm-TabBar-tab:has-text('x - values.ipynb') .lm-TabBar-tabCloseIcon").click()
        self.press(lab, "debugger:stepOut")
        self.stopped_at(lab, "last = 1")
        self.continue_to_end(lab, 0)
        # Stops at an error.
        lab.command("debugger:pause-on-exceptions", filter="uncaught")
        page.wait_for_timeout(1000)
        lab.run(1, wait=False)
        self.stopped_at(lab, "error 'boom'", 1)
        lab.shot("-error")
        self.continue_to_end(lab, 1)
        contains(lab.output(1), "boom")
        lab.run(2, wait=False)
        self.stopped_at(lab, "lt.breakpoint()", 2)
        self.continue_to_end(lab, 2)
        contains(lab.output(2), "behind")
        self.toggle_debugger(lab)
        lab.close()

    def check_notebook(self):
        lab = self.open("classic", *TOUR[:2], path="/notebooks/")
        for index in range(2):
            lab.run(index)
        contains(lab.output(0), "hello")
        contains(lab.output(1), "Linear")
        lab.shot()
        lab.close()

    def check_console(self):
        import pexpect
        console = pexpect.spawn(sys.executable, ["-m", "jupyter_console", "--kernel", "lutra",
                                                 "--simple-prompt"],
                                env=self.server.environment, encoding="utf-8", timeout=SECONDS,
                                dimensions=(40, 120))
        console.expect(r"In \[1\]: ")
        console.sendline("21 * 2")
        console.expect(r"Out\[\d+\]: 42")
        console.sendline('error "boom"')
        console.expect("boom")
        console.sendline("io.read()")
        time.sleep(1)
        console.sendline("typed")
        console.expect('"typed"')
        console.sendline("exit")
        console.expect(pexpect.EOF)

    def run(self, names):
        counts = {"passed": 0, "failed": 0, "skipped": 0}
        for name in [n for n in dir(self) if n.startswith("check_")]:
            if names and not any(part in name for part in names):
                continue
            started = time.monotonic()
            try:
                reason = getattr(self, name)()
                outcome = "skipped" if reason else "passed"
                print("%-8s %s (%.1f s)%s" % (outcome, name, time.monotonic() - started,
                                              ": " + reason if reason else ""), flush=True)
            except Exception:
                outcome = "failed"
                print("FAILED   %s\n%s" % (name, traceback.format_exc()), flush=True)
                for context in self.browser.contexts:
                    for i, page in enumerate(context.pages):
                        if self.screenshots:
                            page.screenshot(path=os.path.join(self.screenshots,
                                                              "failed-%s-%d.png" % (name, i)))
                        page.close()
            counts[outcome] += 1
        return counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "lutra"))
    parser.add_argument("--screenshots")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    find_packages()
    from playwright.sync_api import sync_playwright
    if options.screenshots:
        os.makedirs(options.screenshots, exist_ok=True)
    server = Server(os.path.abspath(options.program))
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            counts = Checks(server, browser, options.screenshots).run(options.names)
            browser.close()
    finally:
        server.close()
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts)
    sys.exit(1 if counts["failed"] else 0)


if __name__ == "__main__":
    main()
