"""The notebooks of examples/notebooks/ and the programs that run notebooks, with an installed kernel.

nbconvert runs the notebooks. The outputs must be those that the file has, except in cells with the
tag "varies". Needs nbconvert; Papermill's tests need papermill.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))

from support import PROGRAM, check, main, same  # noqa: E402

try:
    import nbformat
    from jupyter_client.kernelspec import KernelSpecManager
    from nbconvert.preprocessors import CellExecutionError, ExecutePreprocessor
except ImportError as missing:
    print(f"skipped the notebooks: {missing} (apt install jupyter-nbconvert)")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

try:
    import papermill  # noqa: F401
except ImportError:
    papermill = None

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
NOTEBOOKS = os.path.join(ROOT, "examples", "notebooks")
HOME = tempfile.mkdtemp(prefix="lutra-notebooks-")
DATA = os.environ.get("LUTRA_TEST_DATA", "")
COLORS = re.compile(r"\x1b\[[0-9;]*m")

os.environ.update(
    JUPYTER_DATA_DIR=os.path.join(HOME, "data"), JUPYTER_CONFIG_DIR=os.path.join(HOME, "config"),
    JUPYTER_RUNTIME_DIR=os.path.join(HOME, "run"), JUPYTER_PATH=os.path.join(HOME, "share", "jupyter"),
    IPYTHONDIR=os.path.join(HOME, "ipython"), XDG_STATE_HOME=HOME, XDG_CONFIG_HOME=HOME,
    LC_ALL="C.UTF-8")
os.environ.pop("LUTRA_EMULATE", None)


def lutra(*words, fails=False):
    """Runs the program; returns what it prints."""
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=120)
    check((done.returncode != 0) == fails, done.stdout + done.stderr)
    return done.stdout + done.stderr


def file(name):
    return os.path.join(HOME, name)


def read(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def run(notebook):
    """Runs a notebook in place; an error in a cell raises an exception."""
    ExecutePreprocessor(kernel_name="lutra", timeout=180).preprocess(
        notebook, {"metadata": {"path": NOTEBOOKS}})
    nbformat.validate(notebook)
    return notebook


def tags(cell):
    return cell.metadata.get("tags", [])


def texts(cell):
    """Returns the texts of a cell's outputs, streams as one."""
    streams, found = {}, []
    for output in cell.outputs:
        if output.output_type == "stream":
            streams[output.name] = streams.get(output.name, "") + output.text
        elif output.output_type == "error":
            found.append(output.evalue)
        else:
            found.append((sorted(output.data), output.data["text/plain"]))
    return json.loads(COLORS.sub("", json.dumps([found, streams]).replace("\\u001b", "\x1b")))


def compare(name):
    expected, notebook = read(os.path.join(NOTEBOOKS, name)), read(os.path.join(NOTEBOOKS, name))
    compared = 0
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    run(notebook)
    for i, (got, stored) in enumerate(zip(notebook.cells, expected.cells)):
        if got.cell_type != "code" or "varies" in tags(got):
            continue
        check(texts(got) == texts(stored),
              f"{name}, cell {i}: expected {texts(stored)}, got {texts(got)}")
        compared += len(got.outputs)
    check(compared > 2, f"{name}: {compared} outputs were compared")
    return notebook


def test_jupyter_knows_the_installed_kernel():
    spec = KernelSpecManager().get_kernel_spec("lutra")
    same((spec.argv, spec.language, spec.interrupt_mode),
         ([PROGRAM, "--kernel", "{connection_file}"], "lua", "message"))
    check("lutra" in lutra("--kernel", "list"), "the kernel is not listed")


def test_tour():
    notebook = compare("tour.ipynb")
    kinds = set()
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            kinds.update(output.get("data", {}))
    same(kinds, {"text/plain", "text/html", "image/svg+xml", "image/png"})


def nbconvert(to, *options):
    """Converts the tour by the command line; returns the text of the file."""
    name = os.path.join(NOTEBOOKS, "tour.ipynb")
    done = subprocess.run([sys.executable, "-m", "nbconvert", "--to", to, *options, "--output-dir",
                           file("converted"), name], capture_output=True, text=True, timeout=180)
    check(done.returncode == 0, done.stderr)
    with open(file("converted/tour." + ("lua" if to == "script" else to))) as converted:
        return converted.read()


def test_nbconvert_runs_and_shows_the_tour():
    page = nbconvert("html", "--execute", "--ExecutePreprocessor.kernel_name=lutra")
    for part in ("<table", "svg", "data:image/png;base64", "400/400", "the shell says hello"):
        check(part in page, f"no {part} in the page")


def test_nbconvert_writes_lua():
    check("lt.plot.line(" in nbconvert("script"), "no script in Lua")


def test_autograd():
    compare("autograd.ipynb")


def test_placement():
    notebook = compare("placement.ipynb")
    same(notebook.cells[3].outputs[0].data["text/plain"], "true\t2")


def test_attention():
    compare("attention.ipynb")


def test_mnist():
    """With the data if there is some, and with the digits that the notebook draws."""
    source = os.path.join(NOTEBOOKS, "mnist.ipynb")
    for folder in (os.path.join(DATA, "mnist"), "/nonexistent"):
        if os.path.exists(folder) or folder == "/nonexistent":
            lutra("--export", source, file("mnist.ipynb"), "--force", "--parameter", "epochs=1",
                  "--parameter", f"folder={folder}", "--parameter", "lr=0.01")
            notebook = run(read(file("mnist.ipynb")))
            same(tags(notebook.cells[2]), ["injected-parameters"])
            printed = "".join(o.get("text", "") for c in notebook.cells for o in c.get("outputs", []))
            found = re.findall(r"epoch (\d+): ([\d.]+) %", printed)
            same([epoch for epoch, _ in found], ["1"])
            check(float(found[0][1]) > 85, printed)


def test_stored_outputs_are_small():
    for path in glob.glob(os.path.join(NOTEBOOKS, "*.ipynb")):
        read(path)
        check(os.path.getsize(path) < 180000, f"{path}: {os.path.getsize(path)} bytes")


def test_exported_scripts_run():
    for name in ("tour", "autograd", "attention"):
        script = file(name + ".lua")
        lutra("--export", os.path.join(NOTEBOOKS, name + ".ipynb"), script)
        lutra(script)
        lutra("--export", script, file(name + ".ipynb"), "--force")
        again, expected = read(file(name + ".ipynb")), read(os.path.join(NOTEBOOKS, name + ".ipynb"))
        same([(c.cell_type, c.source, tags(c)) for c in again.cells],
             [(c.cell_type, c.source, tags(c)) for c in expected.cells])


def test_error_in_a_cell_ends_the_run():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x = 1"),
                                               nbformat.v4.new_code_cell("x.y.z")])
    try:
        run(notebook)
    except CellExecutionError as error:
        check("attempt to index" in str(error), str(error))
    else:
        raise AssertionError("the error was not reported")


# ---- Papermill

def install_translator():
    """Installs tools/papermill as pip does; returns the folder for PYTHONPATH."""
    import tomllib

    folder, source = file("python"), os.path.join(ROOT, "tools", "papermill")
    with open(os.path.join(source, "pyproject.toml"), "rb") as text:
        project = tomllib.load(text)["project"]
    info = os.path.join(folder, f"papermill_lutra-{project['version']}.dist-info")
    os.makedirs(info, exist_ok=True)
    shutil.copy(os.path.join(source, "papermill_lutra.py"), folder)
    with open(os.path.join(info, "METADATA"), "w") as text:
        text.write(f"Metadata-Version: 2.1\nName: papermill-lutra\nVersion: {project['version']}\n")
    with open(os.path.join(info, "entry_points.txt"), "w") as text:
        for group, entries in project["entry-points"].items():
            text.write(f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in entries.items()))
    return folder


def papermill_run(*words):
    environment = dict(os.environ, PYTHONPATH=install_translator())
    done = subprocess.run([sys.executable, "-m", "papermill", *words], capture_output=True, text=True,
                          env=environment, timeout=180)
    check(done.returncode == 0, done.stdout + done.stderr)
    return done.stdout + done.stderr


def parameters_notebook():
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("local lr, name = 1, 'a' -- the rate\nlist = {}",
                                         metadata={"tags": ["parameters"]}),
               nbformat.v4.new_code_cell("print(lr, name, #list, list[2], t and t['a b'].c, flag)")],
        metadata={"kernelspec": {"name": "lutra", "language": "lua", "display_name": "Lua"}})
    nbformat.write(notebook, file("in.ipynb"))
    return file("in.ipynb"), file("out.ipynb")


def test_papermill_sets_parameters():
    papermill_run(*parameters_notebook(), "-p", "lr", "0.1", "-p", "name", 'x "y"\\\n\u00e9', "-k",
                  "lutra", "-y", "{list: [1, -2.5], t: {a b: {c: null}}, flag: true}")
    notebook = read(file("out.ipynb"))
    same(tags(notebook.cells[1]), ["injected-parameters"])
    check(notebook.cells[1].source.startswith("-- Parameters\n"), notebook.cells[1].source)
    same(notebook.cells[2].outputs[0].text, '0.1\tx "y"\\\n\u00e9\t2\t-2.5\tnil\ttrue\n')


def test_papermill_reports_names_that_are_no_variables():
    try:
        papermill_run(*parameters_notebook(), "-p", "end", "1")
    except AssertionError as error:
        check("expected the name of a Lua variable as parameter, got 'end'" in str(error), str(error))
    else:
        raise AssertionError("the name was accepted")


def test_papermill_lists_parameters():
    check("list: Unknown type (default {})" in papermill_run(parameters_notebook()[0],
                                                             "--help-notebook"), "no parameters")


if __name__ == "__main__":
    found = {name: value for name, value in globals().items() if name.startswith("test_")}
    if papermill is None:
        print("skipped Papermill's tests: papermill is not installed")
    kept = {n: t for n, t in found.items() if papermill is not None or "papermill" not in n}
    try:
        lutra("--kernel", "install", "--prefix", HOME)
        main(kept, len(found) - len(kept))
    finally:
        shutil.rmtree(HOME, ignore_errors=True)
