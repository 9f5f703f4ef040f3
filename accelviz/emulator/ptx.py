"""Translation of inline PTX to calls of the functions in host/ptx.h, by a table of instructions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

_ASM = re.compile(r"\b(?:asm|__asm__|__asm)\b\s*(?:\b(?:volatile|__volatile__)\b\s*)?\(")
#: A literal, or a character outside of literals, in the arguments of `asm`.
_PIECE = re.compile(r'"(?:\\.|[^"\\])*"|.', re.S)
_OPERAND = re.compile(r'\s*"(?P<constraint>[^"]*)"\s*\((?P<code>.*)\)\s*', re.S)
_TYPES = {
    "b8": "unsigned char", "u8": "unsigned char", "s8": "signed char",
    "b16": "unsigned short", "u16": "unsigned short", "s16": "short",
    "b32": "unsigned", "u32": "unsigned", "s32": "int", "f32": "float",
    "b64": "unsigned long long", "u64": "unsigned long long", "s64": "long long", "f64": "double",
}  # fmt: skip
_TYPE = rf"(?P<type>{'|'.join(_TYPES)})"
_INTEGER = r"(?P<type>[us](?:8|16|32|64))"
_FLOAT = r"(?:\.(?:rn|ftz|sat|approx|full))*"
_SPECIAL = {
    "laneid": "emulator::lane()",
    "warpid": "emulator::ptx::thread() / 32",
    "lanemask_eq": "1u << emulator::lane()",
    "lanemask_lt": "(1u << emulator::lane()) - 1",
    "lanemask_le": "(2u << emulator::lane()) - 1",
    "lanemask_gt": "~((2u << emulator::lane()) - 1)",
    "lanemask_ge": "~((1u << emulator::lane()) - 1)",
    "clock": "unsigned(clock64())",
    "clock64": "clock64()",
    "globaltimer": "clock64()",
    "smid": "0u",
    **{f"{word}.{axis}": f"{variable}.{axis}" for axis in "xyz" for word, variable in
       (("tid", "threadIdx"), ("ntid", "blockDim"), ("ctaid", "blockIdx"), ("nctaid", "gridDim"))},
}  # fmt: skip
_SCOPES = {"cta": "_block", "gl": "", "gpu": "", "sys": "_system"}
_SCOPE, _SPACE = r"(?P<scope>cta|gpu|sys)", r"(?:\.global|\.shared(?:::cta)?)?"
_ATOMICS = "add|min|max|and|or|xor"
_LOADS = r"(?:\.(?:ca|cg|cs|lu|cv|nc|wb|wt|L1::\w+|L2::\w+))*"
#: What the memory order of an atomic adds to its C++, which is `@`.
_ORDERS = {
    "": "@",
    r"\.relaxed": "@",
    r"\.acquire": "emulator::ptx::acquiring(@)",
    r"\.release": "(__threadfence{scope}(), @)",
    r"\.acq_rel": "(__threadfence{scope}(), emulator::ptx::acquiring(@))",
}
#: Types of the elements of A and B in `mma`: (C++, elements in a register, accumulators).
_ELEMENTS = {
    "f16": ("HALF", 2, "f16 f32"), "bf16": ("BFLOAT", 2, "f32"), "tf32": ("TF32", 1, "f32"),
    "s8": ("INT8", 4, "s32"), "u8": ("UINT8", 4, "s32"), "s4": ("INT4", 8, "s32"),
    "u4": ("UINT4", 8, "s32"), "b1": ("BIT", 32, "s32"), "f64": ("DOUBLE", 1, "f64"),
}  # fmt: skip
_MMA = re.compile(
    r"mma\.sync\.aligned\.m(?P<m>8|16)n8k(?P<k>\d+)\.row\.col"
    rf"\.(?P<d>\w+)\.(?P<a>{'|'.join(_ELEMENTS)})\.(?P<b>{'|'.join(_ELEMENTS)})\.(?P<c>\w+)"
    r"(?:\.(?P<bits>and|xor)\.popc)?"
)
_MATRICES = re.compile(
    r"(?P<word>ld|st)matrix\.sync\.aligned(?:\.m8n8\.x(?P<n>[124])|\.x(?P<count>[124])(?P<t>\.trans)?\.m8n8)"
    r"(?P<trans>\.trans)?\.shared(?:::cta)?\.b16"
)
#: (pattern of an operation, C++ for its operands {0}, {1}... of type {T}). The first operand of a
#: value is assigned; without "=", the C++ is a statement. `#` makes an operand an address.
_TABLE = [
    (rf"mov\.{_TYPE}", "= {1}"),
    (rf"(?:add|add\.rn){_FLOAT}\.{_TYPE}", "= {T}({1} + {2})"),
    (rf"sub{_FLOAT}\.{_TYPE}", "= {T}({1} - {2})"),
    (rf"mul(?:\.lo)?{_FLOAT}\.{_TYPE}", "= {T}({1} * {2})"),
    (r"mul\.hi\.(?P<type>u32)", "= __umulhi({1}, {2})"),
    (r"mul\.hi\.(?P<type>s32)", "= __mulhi({1}, {2})"),
    (r"mul\.wide\.(?P<type>u32)", "= (unsigned long long)({1}) * {2}"),
    (r"mul\.wide\.(?P<type>s32)", "= (long long)({1}) * {2}"),
    (r"abs\.(?P<type>s32)", "= abs({1})"),
    (rf"abs{_FLOAT}\.(?P<type>f32|f64)", "= {T}(fabs({1}))"),
    (rf"cvt\.(?P<word>[us](?:8|16|32|64))\.{_INTEGER}", "= emulator::ptx::{word}({1})"),
    (rf"cvt\.rn\.f32\.{_INTEGER}", "= float({1})"),
    (r"cvt\.rzi(?:\.ftz)?\.s32\.(?P<type>f32)", "= __float2int_rz({1})"),
    (r"cvt\.rzi(?:\.ftz)?\.u32\.(?P<type>f32)", "= __float2uint_rz({1})"),
    (rf"mad\.lo\.{_TYPE}", "= {T}({1} * {2} + {3})"),
    (rf"div{_FLOAT}\.{_TYPE}", "= {T}({1} / {2})"),
    (rf"rem\.{_TYPE}", "= {T}({1} % {2})"),
    (rf"(?:fma|mad)\.rn{_FLOAT}\.(?P<type>f32|f64)", "= {T}(__builtin_fma({1}, {2}, {3}))"),
    (rf"(?P<word>min|max){_FLOAT}\.{_TYPE}", "= {word}({1}, {2})"),
    (rf"and\.{_TYPE}", "= {T}({1} & {2})"),
    (rf"or\.{_TYPE}", "= {T}({1} | {2})"),
    (rf"xor\.{_TYPE}", "= {T}({1} ^ {2})"),
    (rf"not\.{_TYPE}", "= {T}(~{1})"),
    (rf"neg{_FLOAT}\.{_TYPE}", "= {T}(-{1})"),
    (rf"shl\.{_TYPE}", "= emulator::ptx::shifted_left({1}, unsigned({2}))"),
    (rf"shr\.{_TYPE}", "= emulator::ptx::shifted_right({1}, unsigned({2}))"),
    (r"ex2\.approx(?:\.ftz)?\.(?P<type>f32)", "= exp2f({1})"),
    (r"lg2\.approx(?:\.ftz)?\.(?P<type>f32)", "= log2f({1})"),
    (r"rcp\.(?:approx|rn)(?:\.ftz)?\.(?P<type>f32)", "= 1.0f / {1}"),
    (r"rsqrt\.approx(?:\.ftz)?\.(?P<type>f32)", "= rsqrtf({1})"),
    (r"sqrt\.(?:approx|rn)(?:\.ftz)?\.(?P<type>f32)", "= sqrtf({1})"),
    (r"tanh\.approx\.(?P<type>f32)", "= tanhf({1})"),
    (r"(?P<word>sin|cos)\.approx(?:\.ftz)?\.(?P<type>f32)", "= {word}f({1})"),
    (r"lop3\.(?P<type>b32)", "= emulator::ptx::lop3({1}, {2}, {3}, {4})"),
    (r"bfe\.(?P<type>u32|s32)", "= emulator::ptx::bfe({1}, unsigned({2}), unsigned({3}))"),
    (r"bfi\.(?P<type>b32)", "= emulator::ptx::bfi({1}, {2}, {3}, {4})"),
    (r"prmt\.(?P<type>b32)", "= __byte_perm({1}, {2}, {3})"),
    (r"popc\.(?P<type>b32)", "= unsigned(__popc({1}))"),
    (r"clz\.(?P<type>b32)", "= unsigned(__clz({1}))"),
    (r"bfind\.(?P<type>u32)", "= unsigned(31 - __clz({1}))"),
    (r"brev\.(?P<type>b32)", "= __brev({1})"),
    (r"shf\.(?P<word>[lr])\.wrap\.(?P<type>b32)", "= __funnelshift_{word}({1}, {2}, {3})"),
    (r"shf\.(?P<word>[lr])\.clamp\.(?P<type>b32)", "= __funnelshift_{word}c({1}, {2}, {3})"),
    (r"dp4a\.s32\.(?P<type>s32)", "= __dp4a({1}, {2}, {3})"),
    (r"vabsdiff4\.u32\.u32\.(?P<type>u32)\.add", "= {3} + __vsadu4({1}, {2})"),
    (r"cvt\.rna\.tf32\.(?P<type>f32)", "= emulator::fragments::rounded_to_tf32({1})"),
    (r"cvta(?:\.to)?\.global\.(?P<type>u64)", "= {1}"),
    (r"cvta\.to\.shared\.(?P<type>u64)", "= emulator::ptx::to_shared({1})"),
    (rf"ld{_LOADS}\.global\.nc{_LOADS}\.{_TYPE}", "= __ldg(emulator::ptx::at<{T}>({#1}))"),
    (rf"ld(?:\.global|\.shared|\.const)?{_LOADS}\.{_TYPE}", "= *emulator::ptx::at<{T}>({#1})"),
    (
        rf"ld\.(?:volatile|relaxed\.\w+)(?:\.global|\.shared)?\.{_TYPE}",
        "= *emulator::ptx::at<volatile {T}>({#1})",
    ),
    (
        rf"ld\.acquire\.\w+(?:\.global|\.shared)?\.{_TYPE}",
        "= emulator::ptx::acquired(emulator::ptx::at<{T}>({#1}))",
    ),
    (
        rf"st\.(?:volatile|relaxed\.\w+)(?:\.global|\.shared)?\.{_TYPE}",
        "*emulator::ptx::at<volatile {T}>({#0}) = {1}",
    ),
    (rf"st(?:\.global|\.shared)?{_LOADS}\.{_TYPE}", "*emulator::ptx::at<{T}>({#0}) = {1}"),
    (
        rf"st\.release\.{_SCOPE}{_SPACE}\.{_TYPE}",
        "__threadfence{scope}(); *emulator::ptx::at<volatile {T}>({#0}) = {1}",
    ),
    *[
        (rf"{word}{order}(?:\.{_SCOPE})?{_SPACE}\.{operation}\.{_TYPE}", form.replace("@", code))
        for order, form in _ORDERS.items()
        for word, operation, code in (
            ("atom", rf"(?P<word>{_ATOMICS}|exch)",
             "emulator::ptx::{word}(emulator::ptx::at<{T}>({#1}), {2})"),
            ("red", rf"(?P<word>{_ATOMICS})",
             "emulator::ptx::{word}(emulator::ptx::at<{T}>({#0}), {1})"),
            ("atom", "cas", "atomicCAS(emulator::ptx::at<{T}>({#1}), {2}, {3})"),
        )
    ],
    (r"(?:bar|barrier)\.(?:cta\.)?sync(?:\.aligned)? 0", "__syncthreads()"),
    (r"bar\.warp\.sync", "__syncwarp({0})"),
    (r"membar\.(?P<scope>cta|gl|sys)", "__threadfence{scope}()"),
    (r"fence\.(?:acq_rel|sc)\.(?P<scope>cta|gpu|sys)", "__threadfence{scope}()"),
    (
        r"shfl\.sync\.(?P<word>up|down|bfly|idx)\.(?P<type>b32)",
        "= emulator::ptx::shfl_{word}({4}, {1}, {2}, {3})",
    ),
    (r"vote\.sync\.ballot\.(?P<type>b32)", "= __ballot_sync({2}, {1})"),
    (r"vote\.sync\.(?P<word>any|all)\.pred", "= bool(__{word}_sync({2}, {1}))"),
    (r"match\.any\.sync\.(?P<type>b32)", "= __match_any_sync({2}, {1})"),
    # What changes the speed alone.
    (r"prefetchu?(?:\.global|\.local)?\.L[12](?:::\w+)?", "void()"),
    (r"griddepcontrol\.(?:wait|launch_dependents)", "void()"),
    (r"setmaxnreg\.(?:inc|dec)\.sync\.aligned\.u32", "void()"),
    (r"activemask\.(?P<type>b32)", "= __activemask()"),
    (r"redux\.sync\.(?P<word>add|min|max|and|or|xor)\.(?P<type>[usb]32)",
     "= __reduce_{word}_sync({2}, {1})"),
    (r"nanosleep\.u32", "__nanosleep({0})"),
    (r"trap", "__trap()"),
    (r"exit|ret", "return"),
    (
        r"cp\.async\.c[ag]\.shared\.global(?:\.L2::\w+)*",
        "emulator::ptx::copy_async({#0}, {#1}, {2}, {3})",
    ),
    (r"cp\.async\.commit_group", "emulator::commit_copies()"),
    (r"cp\.async\.wait_group", "emulator::await_copies({0})"),
    (r"cp\.async\.wait_all", "emulator::await_copies(0)"),
]  # fmt: skip


class _Operand(NamedTuple):
    code: str
    is_output: bool


def translated_ptx(source: str) -> str:
    """Replace inline PTX by C++, or by a compile-time error if an instruction is not in the table.

    Line numbers do not change.
    """
    if "asm" not in source:
        return source
    parts, end = list[str](), 0
    for match in _ASM.finditer(source):
        line_start = source.rfind("\n", 0, match.start()) + 1
        if match.start() < end or "//" in source[line_start : match.start()]:
            continue
        sections, close = _sections(source, match.end())
        try:
            code = _statement(sections)
        except _RefusedPtxError as refusal:  # an error where it is compiled, not behind an #if
            message = str(refusal).translate({34: "'", 92: "/"})
            code = f'_Pragma("GCC error \\"{message}\\"") do {{}} while (0)'
        original = source[match.start() : close]
        newline = "\\\n" if "\\\n" in original else "\n"  # in a macro
        parts += [source[end : match.start()], code, newline * original.count("\n")]
        end = close
    return "".join([*parts, source[end:]])


def _sections(source: str, begin: int) -> tuple[list[str], int]:
    """Return the texts between the colons of an asm's arguments, and the offset behind them."""
    sections, depth, offset = [""], 0, begin
    for piece in _PIECE.finditer(source, begin):
        text, offset = piece[0], piece.end()
        if text == ")" and not depth:
            break
        depth += (text in "([{") - (text in ")]}")
        if text == ":" and not depth:
            sections.append("")
        else:
            sections[-1] += text
    return [re.sub(r"\\\n", " ", section) for section in sections], offset


def _separated(text: str) -> list[str]:
    """Split a text at its commas outside of brackets and literals."""
    parts, depth = [""], 0
    for piece in _PIECE.finditer(text):
        depth += (piece[0] in "([{") - (piece[0] in ")]}")
        if piece[0] == "," and not depth:
            parts.append("")
        else:
            parts[-1] += piece[0]
    return [part.strip() for part in parts if part.strip()]


def _statement(sections: list[str]) -> str:
    """Return the C++ statement for an asm with these sections."""
    if re.sub(r'"(?:\\.|[^"\\])*"', "", sections[0]).strip():
        raise _refusal("text that a macro makes")
    literals = re.findall(r'"((?:\\.|[^"\\])*)"', sections[0])
    text = re.sub(r"\\[nt]", lambda match: "\n" if match[0] == "\\n" else " ", "".join(literals))
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    operands = dict[str, _Operand]()
    for number, section in enumerate(sections[1:3]):
        for operand in _separated(section):
            match = _OPERAND.fullmatch(operand)
            if match is None:
                raise _refusal(operand)
            operands[str(len(operands))] = _Operand(match["code"], number == 0)
    statements = list[str]()
    local = dict[str, str]()
    for instruction in re.split(r";|\n(?=\s*[{}]?\s*$)", text.replace("{\n", "{ ")):
        instruction = " ".join(instruction.split())
        instruction = re.sub(r"^(?:\{|\}) ?(?!.*\}.*,)", "", instruction).strip()
        if instruction and instruction not in "{}":
            statements.append(_instruction(instruction, operands, local))
    return "do { " + " ".join(statements) + " } while (0)"


def _instruction(text: str, operands: dict[str, _Operand], local: dict[str, str]) -> str:
    """Return the C++ statement of one instruction; add declared registers to `local`."""
    if declared := re.fullmatch(r"\.reg \.(\w+) (.*)", text):
        kind = "bool" if declared[1] == "pred" else _TYPES.get(declared[1])
        names = re.findall(r"\w+", declared[2])
        if kind is None:
            raise _refusal(text)
        local.update(dict.fromkeys(names, kind))
        return f"{kind} {', '.join(f'ptx_{name} = 0' for name in names)};"

    def value(operand: str, kind: str) -> str:
        operand = operand.strip()
        if operand in local:
            return f"ptx_{operand}"
        if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", operand):
            return f"__uint_as_float(0x{operand[2:]}u)"
        if re.fullmatch(r"-?(?:0x)?[0-9a-fA-F.]+[uU]?", operand):
            return f"({kind})({operand})" if kind else operand
        name = operand.removeprefix("%")
        if name != operand and name.removeprefix("%") in _SPECIAL:  # nvcc accepts one % of two
            return f"({kind or 'unsigned'})({_SPECIAL[name.removeprefix('%')]})"
        if operand.startswith("%") and name in operands:
            code = operands[name].code
            return f"emulator::ptx::in<{kind}>({code})" if kind else f"({code})"
        raise _refusal(text)

    def assigned(operand: str, code: str) -> str:
        operand = operand.strip()
        if operand in local:
            return f"ptx_{operand} = {code};"
        target = operands.get(operand.removeprefix("%"))
        if target is None or not target.is_output:
            raise _refusal(text)
        return f"({target.code}) = emulator::ptx::out<decltype({target.code})>({code});"

    def address(operand: str) -> str:
        match = re.fullmatch(r"\[\s*(%?%?\w+)\s*(?:\+\s*(-?\w+)\s*)?\]", operand.strip())
        if match is None:
            raise _refusal(text)
        return f"emulator::ptx::pointer({value(match[1], '')}, {match[2] or 0})"

    if predicate := re.fullmatch(r"@(!?)(\w+) (.*)", text):
        inner = _instruction(predicate[3], operands, local)
        return f"if ({predicate[1]}{value(predicate[2], 'bool')}) {{ {inner} }}"
    if match := re.fullmatch(rf"setp\.(eq|ne|lt|le|gt|ge)\.{_TYPE} (\w+), (.*), (.*)", text):
        sign = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[match[1]]
        kind = _TYPES[match["type"]]
        return assigned(match[3], f"({value(match[4], kind)} {sign} {value(match[5], kind)})")
    if match := re.fullmatch(rf"selp\.{_TYPE} (.*), (.*), (.*), (.*)", text):
        kind = _TYPES[match["type"]]
        chosen = f"({value(match[5], 'bool')} ? {value(match[3], kind)} : {value(match[4], kind)})"
        return assigned(match[2], chosen)
    operation, _, rest = text.partition(" ")
    parts = _separated(rest)
    if match := _MMA.fullmatch(operation):
        return _product(match, parts, assigned, value)
    if match := _MATRICES.fullmatch(operation):
        return _matrices(match, parts, assigned, value, address)
    vector = re.search(r"\.v([24])\b", operation)
    if vector:
        operation = operation.replace(vector[0], "")
    for pattern, code in _TABLE:
        whole = f"{operation} {rest}" if " " in pattern else operation
        match = re.fullmatch(pattern, whole)
        if match is None:
            continue
        if operation.startswith("atom"):
            code = f"= {code}"
        fields = {"type": "", "word": "", "scope": "", **match.groupdict()}
        kind = _TYPES.get(fields["type"], "")
        if vector:
            return _vector(operation, parts, int(vector[1]), kind, assigned, value, address)
        word = fields["word"]
        word += "_" * (word in ("and", "or", "xor") and "ptx::{word}" in code)
        code = code.replace("{T}", kind).replace("{word}", word)
        code = code.replace("{scope}", _SCOPES.get(fields["scope"], ""))

        def replaced(field: re.Match[str], kind: str = kind or "int") -> str:
            index = int(field[2])
            if index >= len(parts):
                return "-1"
            return address(parts[index]) if field[1] else value(parts[index], kind)

        code = re.sub(r"\{(#?)(\d)\}", replaced, code)
        return assigned(parts[0], code[2:]) if code.startswith("= ") else f"{code};"
    raise _refusal(text)


def _vector(
    operation: str,
    parts: list[str],
    count: int,
    kind: str,
    assigned: Callable[[str, str], str],
    value: Callable[[str, str], str],
    address: Callable[[str], str],
) -> str:
    """Return the C++ of a load or store of a vector of 2 or 4 numbers."""
    registers = _separated(next(part for part in parts if part.startswith("{"))[1:-1])
    pointer = address(next(part for part in parts if part.startswith("[")))
    array = f"emulator::ptx::Vector<{kind}, {count}> ptx_vector"
    if operation.startswith("ld"):
        nc = "true" if ".nc" in operation else "false"
        lines = [assigned(name, f"ptx_vector.x[{i}]") for i, name in enumerate(registers)]
        return f"{{ {array}; emulator::ptx::load({pointer}, ptx_vector, {nc}); {' '.join(lines)} }}"
    lines = [f"ptx_vector.x[{i}] = {value(name, kind)};" for i, name in enumerate(registers)]
    return f"{{ {array}; {' '.join(lines)} emulator::ptx::store({pointer}, ptx_vector); }}"


def _product(
    mma: re.Match[str],
    parts: list[str],
    assigned: Callable[[str, str], str],
    value: Callable[[str, str], str],
) -> str:
    """Return the C++ of a product of matrices by the lanes of a warp."""
    (of_a, size, sums), (of_b, size_of_b, _) = _ELEMENTS[mma["a"]], _ELEMENTS[mma["b"]]
    halves, depth = int(mma["m"]) // 8, int(mma["k"]) / (4 * size)  # registers of B
    is_whole, is_double = sums == "s32", mma["a"] == "f64"
    shapes = [(1, 1)] * (is_whole or is_double) + [(2, 1), (2, 2)] * (not is_double)
    is_known = (
        mma["c"] == mma["d"]
        and mma["c"] in sums.split()
        and size == size_of_b
        and (is_whole or of_a == of_b)
        and bool(mma["bits"]) == (mma["a"] == "b1")
        and (halves, depth) in shapes
    )
    if not is_known:
        raise _refusal(mma[0])
    word = "double" if is_double else "unsigned"
    kind = {"f16": "unsigned", "f32": "float", "s32": "int", "f64": "double"}[mma["c"]]
    n_sums = halves if mma["c"] == "f16" else 2 * halves
    registers = [_separated(part.strip("{} ")) for part in parts]
    expected = [n_sums, int(halves * depth), int(depth), n_sums]
    if [*map(len, registers)] != expected:
        counts = ", ".join(map(str, expected))
        raise _RefusedPtxError(f"{mma[0]} has lists of {counts} registers for D, A, B and C")
    d, *others = registers
    arrays = [
        f"{type_} {name}[] = {{{', '.join(value(register, type_) for register in of)}}};"
        for name, type_, of in zip(
            ("ptx_mma_a", "ptx_mma_b", "ptx_mma_c"), (word, word, kind), others, strict=True
        )
    ]
    suffix = f"_{mma['bits'].upper()}" if mma["bits"] else ""
    numbers = ", ".join(f"emulator::fragments::{one}{suffix}" for one in (of_a, of_b))
    call = f"emulator::ptx::mma<{numbers}>(ptx_mma_c, ptx_mma_a, ptx_mma_b);"
    results = [assigned(register, f"ptx_mma_c[{i}]") for i, register in enumerate(d)]
    return f"{{ {' '.join([*arrays, call, *results])} }}"


def _matrices(
    instruction: re.Match[str],
    parts: list[str],
    assigned: Callable[[str, str], str],
    value: Callable[[str, str], str],
    address: Callable[[str], str],
) -> str:
    """Return the C++ of a load or store of matrices by the lanes of a warp."""
    is_load = instruction["word"] == "ld"
    lists, addresses = (parts[:1], parts[1:]) if is_load else (parts[1:], parts[:1])
    registers = _separated(lists[0].strip("{} ")) if lists else []
    count = instruction["n"] or instruction["count"]
    if len(parts) != 2 or len(registers) != int(count):
        raise _RefusedPtxError(f"{instruction[0]} has a list of {count} registers and an address")
    transposed = "true" if instruction["t"] or instruction["trans"] else "false"
    name = f"emulator::ptx::{instruction['word']}matrix<{transposed}>"
    call = f"{name}(ptx_words, {address(addresses[0])});"
    if is_load:
        results = [assigned(register, f"ptx_words[{i}]") for i, register in enumerate(registers)]
        return f"{{ unsigned ptx_words[{count}]; {' '.join([call, *results])} }}"
    words = ", ".join(value(register, "unsigned") for register in registers)
    return f"{{ const unsigned ptx_words[] = {{{words}}}; {call} }}"


class _RefusedPtxError(Exception):
    pass


def _refusal(text: str) -> _RefusedPtxError:
    problem = f"the emulator does not run this PTX: `{' '.join(text.split())[:80]}`"
    fix = "use CUDA's functions; docs/emulator.md lists the PTX that runs"
    if re.match(r"(?:mma|(?:ld|st)matrix|wmma|wgmma|tcgen05)\b", text):
        fix = "use nvcuda::wmma of <mma.h>"
    if text.startswith(("bar", "mbarrier")):
        fix = "use __syncthreads, cooperative_groups or cuda::barrier"
    if text.startswith("cp.async.bulk"):
        fix = "copy with cooperative_groups::memcpy_async or cuda::memcpy_async"
    return _RefusedPtxError(f"{problem}: {fix}")
