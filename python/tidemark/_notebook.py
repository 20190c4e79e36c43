"""``%load_ext tidemark``: magics for IPython and Jupyter.

    %%tidemark              profiles the cell below it
    %tidemark_line f(x)     what each line of f allocates and holds
    %tidemark_leaks         what the last traceback, Out and other caches of IPython keep alive

A cell that begins with ``%%tidemark`` is not run by the magic. An input transformer turns that line into a comment, so
that IPython runs the rest as any other cell (exceptions, ``await``, display, history, line numbers), and the events
before and after the cell measure it. The magic itself only runs where that is not possible: below another cell magic.
"""

import argparse
import ast
import inspect
import linecache
import re
import shlex
import sys
import threading
from contextlib import contextmanager
from types import CodeType
from typing import Any, Coroutine, Dict, Iterator, List, NoReturn, Optional, Sequence, Tuple

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.display import display

from ._cell_profile import CellProfile, FunctionProfile, number_of_cell
from ._figures import code_of
from ._leaks import find_kept, free
from ._limits import LimitError, parse_size
from ._profile import Measurement, lines_in

_MAGIC = "%%tidemark"


class _Parser(argparse.ArgumentParser):
    """Reports a mistake as IPython does: one line, no exit. A part of an option's name is a mistake."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog=prog, add_help=False, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}")

    def read(self, line: str) -> argparse.Namespace:
        try:
            return self.parse_args(shlex.split(line))
        except ValueError as fault:  # an unclosed quote
            self.error(str(fault).lower())


def _period(text: str) -> int:
    try:
        return parse_size(text, "--period", "4K")
    except LimitError as fault:
        raise argparse.ArgumentTypeError(str(fault)) from None


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"takes a number such as 10, not {text!r}")
    return int(text)


def _variable(text: str) -> str:
    if not text.isidentifier():
        raise argparse.ArgumentTypeError(f"takes the name of a variable, not {text!r}")
    return text


def _cell_parser() -> _Parser:
    parser = _Parser(_MAGIC)
    parser.add_argument("-o", "--output", type=_variable, metavar="NAME", default=None)
    parser.add_argument("--period", type=_period, default=4096)
    parser.add_argument("--top", type=_count, default=10)
    return parser


class _Measured:
    """One cell or statement while it runs."""

    def __init__(self, period: int, executions: Sequence[CodeType] = ()) -> None:
        self.device = _DevicePeak()
        self.measurement = Measurement(period, even_failed=True, executions=executions)
        self.measurement.__enter__()

    def end(self, error: Optional[BaseException]) -> None:
        self.measurement.__exit__(None if error is None else type(error), error, None)
        self.device.end()


class _DevicePeak:
    """torch's own figures of the devices it already uses; the package never initializes one. Bytes."""

    def __init__(self) -> None:
        self.growth_bytes: Optional[int] = None
        self.peak_bytes: Optional[int] = None
        self._cuda = _cuda_in_use()
        if self._cuda is not None:
            self._first, self._mark = self._sum("memory_allocated"), self._sum("max_memory_allocated")

    def end(self) -> None:
        if self._cuda is not None:
            last, mark = self._sum("memory_allocated"), self._sum("max_memory_allocated")
            self.growth_bytes = last - self._first
            # torch keeps one high-water mark, which may be older than the cell.
            self.peak_bytes = mark if mark > self._mark else None

    def _sum(self, figure: str) -> int:
        cuda = self._cuda
        return sum(getattr(cuda, figure)(index) for index in range(cuda.device_count()))


def _cuda_in_use() -> Any:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


@magics_class
class TidemarkMagics(Magics):
    """The three magics. ``_local.depth``: how many cells of this thread are running, nested."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._local = threading.local()

    # --- cells ----------------------------------------------------------------------------------

    def transform(self, lines: List[str]) -> List[str]:
        """Turns the line ``%%tidemark`` of a cell into a comment; ``before_cell`` and ``after_cell`` measure it."""
        index = next((number for number, line in enumerate(lines) if line.strip()), None)
        if index is None or self._depth() > 0 or self._options("".join(lines)) is None:
            return lines
        return [*lines[:index], f"# {lines[index]}", *lines[index + 1 :]]

    # IPython leaves such a transformer out when it decides whether a cell is complete. It then sees ``%%`` and waits for a
    # blank line, as below any cell magic.
    transform.has_side_effects = True  # type: ignore[attr-defined]

    def before_cell(self, info: Any) -> None:
        depth = self._local.depth = self._depth() + 1
        self._local.cell = None
        if depth == 1:
            self._local.source = info.raw_cell
        options = self._options(info.raw_cell) if depth == 1 else None
        if options is not None:
            self._local.cell = (options, info.raw_cell, _Measured(options.period))

    def after_cell(self, result: Any) -> None:
        depth = self._local.depth = max(0, self._depth() - 1)
        cell = getattr(self._local, "cell", None)
        if depth > 0 or cell is None:
            return
        self._local.cell = None
        options, source, measured = cell
        error = KeyboardInterrupt() if result is None else result.error_in_exec
        measured.end(error)
        if getattr(result, "error_before_exec", None) is None:
            self._show(CellProfile(number_of_cell(self.shell), measured, source, options.top, error), options.output)

    def _depth(self) -> int:
        depth: int = getattr(self._local, "depth", 0)
        return depth

    def _options(self, cell: str) -> Optional[argparse.Namespace]:
        """The options of a cell that begins with a valid ``%%tidemark``, else None."""
        first, _, body = cell.lstrip().partition("\n")
        words = first.split(None, 1)
        if not words or words[0] != _MAGIC or body.lstrip().startswith("%%"):
            return None
        try:
            return _cell_parser().read(words[1] if len(words) > 1 else "")
        except UsageError:
            return None  # the magic itself reports it

    @cell_magic
    def tidemark(self, line: str, cell: str) -> Any:
        """Profiles the memory of a cell: peak, growth, the lines behind it.

        %%tidemark [-o NAME] [--period 4K] [--top 10]

        -o NAME   keep the profile in this variable: .measurement, .lines()
        --period  bytes between two samples; smaller is sharper and slower, 1 records every allocation
        --top     how many lines of code outside the cell are listed
        """
        options = _cell_parser().read(line)
        number = number_of_cell(self.shell)
        whole, above = self._whole(cell)
        source = "\n" * above + self.shell.transform_cell(cell)
        name = self.shell.compile.cache(source, number, raw_code=whole)
        tree = ast.parse(source, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        try:
            codes = [compile(tree, name, "exec")]
            if isinstance(last, ast.Expr):
                codes.append(compile(ast.Expression(last.value), name, "eval"))
        except SyntaxError as fault:
            if "await" in str(fault) or "async" in str(fault):
                raise UsageError(f"{_MAGIC} must be the cell's first line if the cell awaits at its top level") from None
            raise
        measured, error, value = _Measured(options.period), None, None
        try:
            for code in codes:
                value = eval(code, self.shell.user_ns)
        except BaseException as raised:
            error = raised
            raise
        finally:
            measured.end(error)
            profile = CellProfile(number, measured, whole, options.top, error, name)
            self._show(profile, options.output)
            del error  # a local of this frame, which the traceback holds
        return value if last is not None else None

    def _whole(self, body: str) -> Tuple[str, int]:
        """The source of the whole cell, and its number of lines above the body, so that lines keep their numbers."""
        whole = getattr(self._local, "source", "").strip()
        start = whole.rfind(body.strip())
        return (whole, whole.count("\n", 0, start)) if start >= 0 else (body, 0)

    def _show(self, profile: CellProfile, name: Optional[str]) -> None:
        if name is not None:
            self.shell.user_ns[name] = profile
        display(profile)

    # --- functions ------------------------------------------------------------------------------

    @line_magic
    def tidemark_line(self, line: str) -> Optional[Coroutine[Any, Any, None]]:
        """Runs a statement and lists what each line of a function allocated, held at the peak and still holds.

        %tidemark_line load(path)            the lines of load
        %tidemark_line load                  the same, called without arguments
        %tidemark_line -f parse main(path)   the lines of parse, while main(path) runs
        %tidemark_line -o NAME load(path)    keeps what load returned in the variable NAME
        %tidemark_line -e load(path)         also how often each line is executed, and its growth per execution
        %tidemark_line await fetch(url)      awaits in the kernel's event loop
        """
        __tracebackhide__ = True  # IPython leaves this frame out of the traceback of a statement that fails
        functions, output, executions, statement = _read_statement(line)
        compiled = self._statement(statement, functions)
        awaits = bool(compiled.co_flags & inspect.CO_COROUTINE)
        codes = self._codes(functions, statement, awaits)
        if awaits:
            return self._awaited(compiled, codes, executions, output)
        with _listed(codes, executions):
            value = eval(compiled, self.shell.user_ns)
        self._keep(output, value)
        return None

    async def _awaited(
        self, compiled: CodeType, codes: List[CodeType], executions: bool, output: Optional[str]
    ) -> None:
        """``transform_line`` has put an ``await`` before the call of the magic."""
        __tracebackhide__ = True
        with _listed(codes, executions):
            value = await eval(compiled, self.shell.user_ns)
        self._keep(output, value)

    def _keep(self, name: Optional[str], value: Any) -> None:
        if name is not None:
            self.shell.user_ns[name] = value

    def transform_line(self, lines: List[str]) -> List[str]:
        """Awaits each ``%tidemark_line`` whose statement does."""
        return [_with_await(line) for line in lines]

    def _codes(self, names: List[str], statement: str, awaits: bool) -> List[CodeType]:
        codes = [self._code(name) for name in names or [_called_name(statement)]]
        if not names and not awaits and codes[0].co_flags & inspect.CO_COROUTINE:
            raise UsageError(f"%tidemark_line: await the coroutine: %tidemark_line await {statement}")
        if not names and codes[0].co_flags & inspect.CO_ASYNC_GENERATOR:
            name = _called_name(statement)
            raise UsageError(f"%tidemark_line: {name} is iterated: %tidemark_line -f {name} [x async for x in {statement}]")
        return codes

    def _code(self, name: str) -> CodeType:
        try:
            value = eval(name, self.shell.user_ns)
        except NameError:
            raise UsageError(f"%tidemark_line: {name} is not defined") from None
        except Exception as fault:
            raise UsageError(f"%tidemark_line: {name}: {type(fault).__name__}: {fault}") from None
        code = code_of(value)
        if code is None:
            kind = type(value).__name__
            raise UsageError(f"%tidemark_line: {name} is a {kind}, not a Python function; -f FUNCTION names the one to list")
        return code

    def _statement(self, statement: str, functions: List[str]) -> CodeType:
        try:
            tree = ast.parse(statement, mode="eval")
        except SyntaxError:
            return _compiled(statement, "exec")
        is_name = isinstance(tree.body, (ast.Name, ast.Attribute)) and not functions
        return _compiled(f"{statement}()" if is_name else statement, "eval")

    # --- leaks ----------------------------------------------------------------------------------

    @line_magic
    def tidemark_leaks(self, line: str) -> None:
        """Lists what IPython keeps alive after you are done with it, with sizes and the command that frees each.

        %tidemark_leaks                     the last traceback, Out, _, __, _i and other caches
        %tidemark_leaks --free traceback    frees one of them; --free all frees everything that is listed
        """
        parser = _Parser("%tidemark_leaks")
        parser.add_argument("--free", metavar="NAME", default=None)
        options = parser.read(line)
        if options.free is None:
            display(find_kept(self.shell))
        else:
            print(_freed(self.shell, options.free))


def _freed(shell: Any, name: str) -> str:
    try:
        return free(shell, name)
    except ValueError as fault:
        raise UsageError(f"%tidemark_leaks: {fault}") from None


def _read_statement(line: str) -> Any:
    functions: List[str] = []
    output = None
    executions = False
    rest = line.strip()
    while rest.startswith("-"):
        option, _, rest = rest.partition(" ")
        if option == "-e":
            executions, rest = True, rest.strip()
            continue
        value, _, rest = rest.strip().partition(" ")
        if option not in ("-f", "-o"):
            raise UsageError(f"%tidemark_line: {option} is not an option; it takes -e, -f FUNCTION and -o NAME, then a statement")
        if not (value if option == "-f" else value.isidentifier()):
            raise UsageError(f"%tidemark_line: {option} takes the name of a {'function' if option == '-f' else 'variable'}")
        if option == "-f":
            functions.append(value)
        else:
            output = value
        rest = rest.strip()
    if not rest:
        raise UsageError("%tidemark_line: takes a call, such as %tidemark_line load(path)")
    try:
        _compiled(rest, "exec")
    except SyntaxError as fault:
        raise UsageError(f"%tidemark_line: {fault.msg}: {rest}") from None
    return functions, output, executions, rest


#: The file name of the code of a statement.
_STATEMENT = "<%tidemark_line>"


def _compiled(statement: str, mode: str) -> CodeType:
    """A coroutine's code if the statement awaits."""
    code: CodeType = compile(statement, _STATEMENT, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    linecache.cache[_STATEMENT] = (len(statement), None, [f"{statement}\n"], _STATEMENT)  # for tracebacks
    return code


#: IPython's translation of the line ``%tidemark_line ...``, also behind ``name = ``.
_LINE_CALL = re.compile(r"get_ipython\(\)\.run_line_magic\('tidemark_line', ")


def _with_await(line: str) -> str:
    found = _LINE_CALL.search(line)
    if found is None:
        return line
    try:
        statement = _read_statement(ast.literal_eval(line[found.end() :].strip().rstrip(")")))[-1]
        awaits = _compiled(statement, "exec").co_flags & inspect.CO_COROUTINE
    except (UsageError, SyntaxError, ValueError):
        return line  # the magic itself reports it
    return f"{line[: found.start()]}await {line[found.start() :]}" if awaits else line


@contextmanager
def _listed(codes: List[CodeType], executions: bool) -> Iterator[None]:
    """Measures the block, then displays the lines of the functions."""
    measured, error = _Measured(1024, codes if executions else ()), None
    try:
        yield
    except BaseException as raised:
        error = raised
        raise
    finally:
        measured.end(error)
        display(FunctionProfile(measured, codes, lines_in, error))
        del error


def _called_name(statement: str) -> str:
    """The function that a statement calls: ``load`` of ``rows = load(path)`` and of ``await load(path)``."""
    body = ast.parse(statement).body
    value = getattr(body[0], "value", None) if len(body) == 1 else None
    value = value.value if isinstance(value, ast.Await) else value
    function = value.func if isinstance(value, ast.Call) else value
    if not isinstance(function, (ast.Name, ast.Attribute)):
        raise UsageError("%tidemark_line: name the function to show: %tidemark_line -f FUNCTION STATEMENT")
    return ast.get_source_segment(statement, function) or ""


#: By the shell's id: what ``unload`` removes.
_loaded: Dict[int, TidemarkMagics] = {}


def load(shell: Any) -> None:
    if id(shell) in _loaded:
        return
    magics = _loaded[id(shell)] = TidemarkMagics(shell)
    shell.register_magics(magics)
    shell.input_transformers_cleanup.append(magics.transform)
    shell.input_transformers_post.append(magics.transform_line)
    shell.events.register("pre_run_cell", magics.before_cell)
    shell.events.register("post_run_cell", magics.after_cell)


def unload(shell: Any) -> None:
    magics = _loaded.pop(id(shell), None)
    if magics is None:
        return
    shell.input_transformers_cleanup.remove(magics.transform)
    shell.input_transformers_post.remove(magics.transform_line)
    shell.events.unregister("pre_run_cell", magics.before_cell)
    shell.events.unregister("post_run_cell", magics.after_cell)
    for kind, names in (("cell", ["tidemark"]), ("line", ["tidemark_line", "tidemark_leaks"])):
        for name in names:
            shell.magics_manager.magics[kind].pop(name, None)
