"""Writes Papermill's parameters in Lua: papermill in.ipynb out.ipynb -p lr 0.1

Papermill finds this module by the entry point in pyproject.toml after

    pip install tools/papermill

Importing it registers the translator, also without an installation:

    python3 -m papermill_lutra in.ipynb out.ipynb -p lr 0.1
"""

import math
import re

from papermill.engines import NBClientEngine as Engine  # the usual engine, for the entry point
from papermill.models import Parameter
from papermill.translators import Translator, papermill_translators

__all__ = ["Engine", "LuaTranslator"]

KEYWORDS = set(
    "and break do else elseif end false for function goto if in local nil not or repeat return then "
    "true until while".split()
)
ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
ASSIGNMENT = re.compile(r"^(?:local\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*(?:--\s*(.*))?$")


def is_name(text):
    return isinstance(text, str) and bool(NAME.match(text)) and text not in KEYWORDS


class LuaTranslator(Translator):
    """Values of Python as literals of Lua."""

    @classmethod
    def translate_none(cls, val):
        return "nil"

    @classmethod
    def translate_float(cls, val):
        if math.isfinite(val):
            return repr(val)
        return "0/0" if math.isnan(val) else "math.huge" if val > 0 else "-math.huge"

    @classmethod
    def translate_int(cls, val):
        return str(val) if -(2**63) < val < 2**63 else repr(float(val))

    @classmethod
    def translate_escaped_str(cls, str_val):
        def escaped(match):
            c = match.group()
            if c in ESCAPES:
                return ESCAPES[c]
            return "".join("\\%03d" % byte for byte in c.encode("utf-8", "replace"))

        return '"%s"' % re.sub(r'["\\\x00-\x1f\x7f\ud800-\udfff]', escaped, str(str_val))

    @classmethod
    def translate_list(cls, val):
        return "{%s}" % ", ".join(cls.translate(item) for item in val)

    @classmethod
    def translate_dict(cls, val):
        def field(key):
            return key if is_name(key) else "[%s]" % cls.translate(key)

        return "{%s}" % ", ".join(
            "%s = %s" % (field(key), cls.translate(item)) for key, item in val.items()
        )

    @classmethod
    def comment(cls, cmt_str):
        return "\n".join(("-- " + line).rstrip() for line in cmt_str.split("\n"))

    @classmethod
    def assign(cls, name, str_val):
        if not is_name(name):
            raise ValueError("expected the name of a Lua variable as parameter, got %r" % (name,))
        return "%s = %s" % (name, str_val)

    @classmethod
    def inspect(cls, parameters_cell):
        """Returns the variables of the cell of parameters, for papermill --help-notebook."""
        found = []
        for line in parameters_cell["source"].splitlines():
            match = ASSIGNMENT.match(line)
            if match:
                name, value, text = match.groups()
                found.append(Parameter(name, "None", value, text or ""))
        return found


papermill_translators.register("lua", LuaTranslator)

if __name__ == "__main__":
    from papermill.cli import papermill

    papermill(prog_name="papermill")
