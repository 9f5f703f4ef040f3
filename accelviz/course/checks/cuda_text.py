"""Whether a student's kernel is CUDA and nothing else, judged by its tokens.

The emulator compiles a kernel for the machine that grades, where C++ can do more than CUDA: call
the system, run before the kernel does, or switch off what watches it. What could is refused.
"""

from __future__ import annotations

import ctypes
import functools
import re

from accelviz.errors import KernelError

#: A kernel with more letters is no answer to a question of this course.
MOST_LETTERS = 50_000
_TOKEN = re.compile(
    r'(?P<name>[A-Za-z_$][\w$]*)|(?P<text>"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')'
    r"|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)|(?P<sign>::|##|%:|<:|<%|[^\s\w])"
)
_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')', re.S)
_GROUPS = "cooperative_groups"
_HEADERS = frozenset(
    {
        *('"common.cuh"', '"vectors.cuh"', f"<{_GROUPS}.h>", f"<{_GROUPS}/reduce.h>"),
        *(f"<{_GROUPS}/scan.h>", f"<{_GROUPS}/memcpy_async.h>", "<cuda_fp16.h>", "<cuda_bf16.h>"),
        *("<cuda_runtime.h>", "<math_constants.h>", "<device_launch_parameters.h>"),
    }
)
_SHORT = re.compile(rf"\bnamespace\s+cg\s*=\s*(::\s*)?{_GROUPS}\s*;")
#: A text that printf takes for no more than numbers to show: no escapes by number, no %n, no %s.
_SHOWN = re.compile(
    r'"(?:[^"\\%]|\\[nt"\\]|%(?:%|[-+ #0]*\d{0,3}(?:\.\d{1,3})?(?:hh?|ll?|z)?[diuxXofeEgGc]))*"'
)
#: Names of CUDA's that begin with two underscores.
_CUDA = re.compile(
    r"__(global|device|shared|constant|restrict|forceinline|noinline|launch_bounds|align)__"
    r"|__(restrict|sync(threads|warp)(_count|_and|_or)?|threadfence(_block|_system)?|activemask"
    r"|trap|nanosleep)"
    r"|__(shfl(_up|_down|_xor)?|ballot|any|all|match_(any|all)|reduce_(add|min|max|and|or|xor))_sync"
    r"|__(ld(g|ca|cg|cs|lu|cv)|st(wb|cg|cs|wt)|popc(ll)?|ffs(ll)?|clz(ll)?|brev(ll)?|byte_perm)"
    r"|__(u?mul(24|hi|64hi)|umul24|umulhi|umul64hi|saturatef|fdividef|powf|exp(10)?f|log(2|10)?f)"
    r"|__(sin|cos|tan|sincos)f|__f(ma)?(f|add|mul|sub|div|sqrt|rsqrt|rcp)?_r[nzud]"
    r"|__d(add|mul|sub|div|sqrt|rcp)_r[nzud]|__fmaf_r[nzud]|__f(add|mul|sub|div)_r[nzud]"
    r"|__(int|uint|float|double|ll|ull|half)2(int|uint|float|double|ll|ull|half)(_r[nzud])?"
    r"|__(float|int|uint|double|longlong|hiloint)_?(as|2)_?(float|int|uint|double|longlong)"
    r"|__h(add|mul|sub|fma|div|neg|max|min|eq|lt|gt|le|ge)2?|__(half2?|float)2?(half2?|float2?)\w*"
    r"|__(low|high)2(float|half)|__halves2half2|__nv_bfloat162?|__CUDA_ARCH__"
)
#: Functions of C that CUDA has, too.
_SHARED = frozenset(
    {
        *("abs", "fabs", "fabsf", "min", "max", "fmin", "fmax", "fminf", "fmaxf", "fma", "fmaf"),
        *("sqrt", "sqrtf", "rsqrt", "rsqrtf", "cbrt", "cbrtf", "exp", "expf", "exp2", "exp2f"),
        *("log", "logf", "log2", "log2f", "log10", "log10f", "pow", "powf", "floor", "floorf"),
        *("ceil", "ceilf", "round", "roundf", "trunc", "truncf", "rint", "rintf", "fmod", "fmodf"),
        *("sin", "sinf", "cos", "cosf", "tan", "tanf", "tanh", "tanhf", "erf", "erff", "isnan"),
        *("isinf", "isfinite", "copysign", "copysignf", "ldexp", "ldexpf", "hypot", "hypotf"),
        # good names for variables, and harmless as functions
        *("index", "end", "y0", "y1", "yn", "j0", "j1", "jn", "gamma", "edata", "etext"),
    }
)
#: Of those, the ones that are likelier a variable.
_VARIABLES = frozenset(
    {
        *("index", "end", "y0", "y1", "yn", "j0", "j1", "jn", "gamma", "edata", "etext"),
        *("min", "max"),
    }
)
_TYPES = frozenset(("void", "bool", "char", "short", "int", "long", "float", "double", "unsigned"))
_REFUSED = {
    **dict.fromkeys(("asm", "_asm"), "assembly"),
    **dict.fromkeys(("std", "emulator", "namespace"), "what is not CUDA's"),
    **dict.fromkeys(("new", "delete", "malloc", "free", "alloca"), "memory of the host"),
    **dict.fromkeys(("try", "catch", "throw"), "exceptions"),
    **dict.fromkeys(("class", "operator", "virtual", "friend"), "classes; a plain struct will do"),
    **dict.fromkeys(("thread_local", "_Pragma", "typeid", "dynamic_cast"), "what CUDA has not"),
    **dict.fromkeys(("goto", "decltype", "typeof"), "what a kernel does not need"),
    **dict.fromkeys(("import", "module", "export", "using"), "what CUDA has not"),
}


def only_cuda(code: str) -> None:
    """Refuse a kernel that is more than CUDA.

    Raises
    ------
    KernelError
        Naming what it uses, and the line.
    """
    if not isinstance(code, str):
        raise _error(0, f"the kernel is a {type(code).__name__}", "a text")
    if len(code) > MOST_LETTERS:
        raise _error(0, f"the kernel has {len(code):,} letters", f"at most {MOST_LETTERS:,}")
    if "??" in code:
        raise _error(0, "it has a trigraph (??)", "a space between the question marks")
    if not code.isprintable() and re.search(r"[^\S \t\r\n]|[\x00-\x08\x0e-\x1f]", code):
        raise _error(0, "it has control characters", "plain text")
    code = re.sub(r"\\[ \t\r]*\n", " \x01", code)  # a line goes on: tokens do not
    if re.search(r"\w \x01\w|[#%\[/*:] \x01", code):
        raise _error(0, "a name or a sign goes on behind a \\ at the end of a line", "one line")
    code = code.replace(" \x01", " ")
    # comments go, their lines stay
    code = _COMMENT.sub(lambda m: m[1] or " " + "\n" * m[0].count("\n"), code)
    code = _SHORT.sub(lambda m: "\n" * m[0].count("\n"), code)
    if not code.isascii():
        raise _error(0, "it has letters beyond ASCII outside of comments", "ASCII")
    if re.search(r'\b(u8|[uUL])?R"', code):
        raise _error(0, "it has a raw string", "a kernel needs none")
    plain = []
    for number, line in enumerate(code.split("\n"), 1):
        directive = line.lstrip().startswith("#")
        if directive:
            line = _directive(line.strip(), number)
        tokens = [(*each, number) for each in _tokens(line, number)]
        words = ["", "", *(token for _, token, _ in tokens), "", "", ""]
        for i, (kind, token, _) in enumerate(tokens, 2):
            if token == "printf":
                _printed(words[i + 1 : i + 4], number)
            elif kind == "name":
                member = words[i - 1] == "." and words[i - 2] != "."
                _name(token, number, member)
        plain += [] if directive else tokens
        if directive:
            _pointers(tokens)
    _outside(plain)
    _pointers(plain)


def _error(line: int, problem: str, expected: str) -> KernelError:
    where = f"yours.cu:{line}" if line else "yours.cu"
    return KernelError(where, problem, expected)


def _tokens(line: str, number: int) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for match in _TOKEN.finditer(line):
        kind, token = str(match.lastgroup), match[0]
        if token in ("##", "%:", "<:", "<%") or not token.isascii():
            raise _error(number, f"it has {token!r}", "names and signs written out, in ASCII")
        if token == "[" and found and found[-1][1] == "[":
            raise _error(number, "it has an attribute ([[...]])", "a kernel without")
        if token in ("'", '"', "\\", "`", "@"):
            raise _error(number, f"it has a {token} that nothing closes or explains", "CUDA")
        found.append((kind, token))
    return found


def _directive(line: str, number: int) -> str:
    """Check a line of the preprocessor; return what of it is code."""
    text = line[1:].strip()
    name = re.match(r"\w*", text)[0]  # type: ignore[index]
    rest = text[len(name) :].strip()
    if name == "include" and rest not in _HEADERS:
        raise _error(number, f"it includes {rest[:40]}", f"only {', '.join(sorted(_HEADERS))}")
    if name == "pragma" and not re.fullmatch(r"unroll\s*(\(?\s*\w+\s*\)?)?", rest):
        raise _error(number, f"it has #pragma {rest[:40]}", "only #pragma unroll")
    if name in ("define", "undef"):
        macro = re.match(r"\w*", rest)[0]  # type: ignore[index]
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", macro) or macro.startswith(("EMULAT", "RECORD")):
            raise _error(
                number, f"it defines {macro}", "macros in capitals, with names of your own"
            )
        return rest
    known = ("include", "pragma", "if", "ifdef", "ifndef", "else", "elif", "endif", "error", "")
    if name not in known:
        raise _error(number, f"it has #{name[:20]}", "#define, #if and #include")
    return rest if name in ("if", "elif") else ""


def _name(name: str, number: int, member: bool = False) -> None:
    """Check a name; a member, such as a group's sync(), is no function of the host."""
    if "$" in name or re.search(r"emulat", name, re.I) or name.startswith("EMULATOR"):
        raise _error(number, f"it uses {name}", "names of CUDA's and your own")
    if name in _REFUSED:
        raise _error(number, f"it uses {name}: {_REFUSED[name]}", "CUDA alone")
    if name.startswith("__"):
        if not _CUDA.fullmatch(name):
            raise _error(number, f"it uses {name}, which is not CUDA's or not known here", "CUDA")
    elif not member and name not in _SHARED and _is_of_the_host(name):
        raise _error(
            number, f"it uses {name}, a function of the host", "another name, if it is your own"
        )


def _printed(following: list[str], number: int) -> None:
    """Check what follows `printf`: one text in quotes that says how numbers are shown."""
    bracket, text, then = following
    if bracket != "(" or not _SHOWN.fullmatch(text) or then not in (",", ")"):
        what = "it uses printf with something else than one plain text, in the same line, first"
        raise _error(number, what, 'printf("%d %g\\n", ...), which shows numbers')


@functools.cache
def _is_of_the_host(name: str) -> bool:
    """Whether a C library that is loaded anyway has something of that name."""
    try:
        getattr(ctypes.CDLL(None), name)
    except AttributeError:
        return False
    return True


def _outside(tokens: list[tuple[str, str, int]]) -> None:
    """Refuse what would run outside of the kernel: initial values that are worked out."""
    depth, start = 0, 0
    structs: set[str] = set()
    for i, (kind, token, number) in enumerate(tokens):
        before = tokens[i - 1][1] if i else ";"
        if token == "::" and before not in ("cooperative_groups", "cg"):
            raise _error(number, "it uses ::", "names of CUDA's and your own")
        if before in ("struct", "union") and kind == "name":
            structs.add(token)
        if token == "(" and (before in structs or before == "~"):
            raise _error(number, f"{before} has a constructor or is called", "a plain struct")
        if token == "extern" and not _extern(tokens, i):
            raise _error(
                number,
                "it declares what is elsewhere (extern)",
                'extern "C" __global__ or __shared__',
            )
        if depth == 0 and token == ";":
            _statement(tokens[start:i], number)
        if token == "{":
            head = [each[1] for each in tokens[start:i]] if depth == 0 else []
            if depth == 0 and "=" not in head:
                inside = {"struct", "union", "enum"} & set(head)
                if not inside and ")" not in head:
                    raise _error(number, "a { outside of a function", "a kernel, or = { numbers }")
                if inside and ")" not in head:
                    _members(tokens, i)
            depth += 1
        if token == "}":
            depth -= 1
            first = next((j for j in range(start, i) if tokens[j][1] in ("{", "=")), start)
            if depth == 0 and tokens[first][1] == "{" and not _is_type(tokens[start:first]):
                start = i + 1
        if depth == 0 and token == ";":
            start = i + 1


def _pointers(tokens: list[tuple[str, str, int]]) -> None:
    """Refuse pointers to functions and to labels: a made-up one may call anything of the host."""
    words = [*(each[1] for each in tokens), "", "", ""]
    depths, closing = _brackets(words)
    # what is followed by ( outside of all bodies is the head of a function
    own = {words[i] for i in range(len(tokens)) if words[i + 1] == "(" and depths[i] == (0, 0)}
    functions = own | _SHARED - _VARIABLES
    for i, (kind, token, number) in enumerate(tokens):
        before, after = words[i - 1] if i else "", words[i + 1]
        what = ""
        if kind == "name" and token in functions and after not in ("(", "<"):
            what = f"it uses {token}, a function, as a value"
        if token == "typedef" and "(" in words[i : words.index(";", i) if ";" in words[i:] else i]:
            what = "it names a type of functions"
        if token == "&" == after and before in ("", "(", "=", ",", "return", "{", ";"):
            what = "it takes the address of a label"
        if token == "(":
            behind = words[closing.get(i, i) + 1]
            if after in ("*", "&", "^") and behind == "(" and before not in ("if", "while"):
                what = "it has a pointer to a function"
            if after == "{":
                what = "it has statements in an expression"
            if before in _TYPES and after in {*_TYPES, "const", ")"} and words[i + 2] != "(":
                what = "it names a type of functions"
            nested = depths[i][0] == 0 < depths[i][1] and behind != "["  # float (&sums)[4]
            if nested and (before.isidentifier() or before == ")"):
                what = "a parameter is a function, or has a default that is worked out"
        if what:
            raise _error(number, what, "calls of your functions, by their names")


def _brackets(words: list[str]) -> tuple[list[tuple[int, int]], dict[int, int]]:
    """Return how deep in {} and in () each word stands, and where each ( is closed."""
    depths: list[tuple[int, int]] = []
    closing: dict[int, int] = {}
    waiting: list[int] = []
    braces = 0
    for i, word in enumerate(words):
        braces -= word == "}"
        if word == ")" and waiting:
            closing[waiting.pop()] = i
        depths.append((braces, len(waiting)))
        if word == "(":
            waiting.append(i)
        braces += word == "{"
    return depths, closing


def _is_type(head: list[tuple[str, str, int]]) -> bool:
    words = [each[1] for each in head]
    return bool({"struct", "union", "enum"} & set(words)) and ")" not in words


def _extern(tokens: list[tuple[str, str, int]], i: int) -> bool:
    following = [each[1] for each in tokens[i + 1 : i + 3]]
    return following == ['"C"', "__global__"] or following[:1] == ["__shared__"]


def _statement(tokens: list[tuple[str, str, int]], number: int) -> None:
    """Check a declaration outside of functions: it has no call, and so nothing that runs."""
    words = [each[1] for each in tokens]
    if not words or words[0] in ("static_assert", "typedef"):
        return
    for i, word in enumerate(words):
        if word == "(" and words[i - 1] not in ("__align__", "alignas"):
            raise _error(
                number, "a call or a declaration outside of a function", "the function itself"
            )
    if "=" in words:
        for kind, word, _ in tokens[words.index("=") + 1 :]:
            if kind == "name" and not word.isupper() and word not in ("true", "false"):
                raise _error(
                    number, f"an initial value outside of a function uses {word}", "numbers"
                )


def _members(tokens: list[tuple[str, str, int]], i: int) -> None:
    """Check a struct: plain members without initial values."""
    depth = 0
    for _, token, number in tokens[i:]:
        depth += (token == "{") - (token == "}")
        if token == "=" and depth == 1:
            raise _error(number, "a member with an initial value", "a plain struct")
        if depth == 0:
            return
