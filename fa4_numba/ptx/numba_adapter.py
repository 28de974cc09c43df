"""Turns rows of the instruction table into Numba-CUDA intrinsics, and composes rows into unrolled tile code.

Two ways to use a row in a kernel:

* ``mbarrier_arrive = intrinsic_for("mbarrier_arrive")`` gives a function to call from device code.
* ``@unrolled(ret, *args)`` marks a Python function that runs *while the kernel is compiled*. It gets an
  :class:`Emitter` first, whose methods are the table's rows, and emits straight-line code: its ``for`` loops are
  unrolled by construction and its lists are registers.

Register tiles are ``UniTuple(float32, n)``; nothing here ever touches local memory.
"""

from functools import cache

from llvmlite import ir
from numba.cuda import types
from numba.cuda.cgutils import create_struct_proxy, pack_array
from numba.cuda.extending import intrinsic

from .instruction import Instruction, Operand
from .table import instruction

NUMBA_TYPE = {
    "u32": types.uint32,
    "i32": types.int32,
    "u64": types.uint64,
    "f32": types.float32,
    "f32x2": types.uint64,
}
LLVM_TYPE = {
    "u32": ir.IntType(32),
    "i32": ir.IntType(32),
    "u64": ir.IntType(64),
    "f32": ir.FloatType(),
    "f32x2": ir.IntType(64),
}


def numba_type(operand: Operand):
    """Return the Numba type of an operand: a scalar, or a tuple of scalars for a register vector."""
    scalar = NUMBA_TYPE[operand.kind]
    return types.UniTuple(scalar, operand.count) if operand.count else scalar


def emit(builder, row: Instruction, arguments: list) -> list:
    """Emit one inline-asm call; vectors are lists of LLVM values, in arguments and in the result."""
    flat = []
    for operand, argument in zip(row.in_operands, arguments, strict=True):
        flat += argument if operand.count else [argument]
    out_types = [LLVM_TYPE[o.kind] for o in row.out_operands for _ in range(o.registers)]
    if not out_types:
        result_type = ir.VoidType()
    elif len(out_types) == 1:
        result_type = out_types[0]
    else:
        result_type = ir.LiteralStructType(out_types)
    text, constraints = row.llvm_asm()
    asm = ir.InlineAsm(
        ir.FunctionType(result_type, [value.type for value in flat]),
        text,
        constraints,
        side_effect=not row.pure,
    )
    call = builder.call(asm, flat, attrs=("convergent",) if row.convergent else ())
    if len(out_types) <= 1:
        values = [call] if out_types else []
    else:
        values = [builder.extract_value(call, i) for i in range(len(out_types))]
    results, first = [], 0
    for operand in row.out_operands:
        part = values[first : first + operand.registers]
        results.append(part if operand.count else part[0])
        first += operand.registers
    return results


def _named_arguments(implementation, count: int):
    """Give ``implementation(context, *args)`` explicit parameters: Numba wants to see them."""
    names = "".join(f", a{i}" for i in range(count))
    scope = {"implementation": implementation}
    exec(f"def typed(context{names}):\n    return implementation(context{names})\n", scope)
    return scope["typed"]


def _device_function(result_type, argument_types, generate):
    """Make an intrinsic whose code is ``generate(builder, lowered_arguments) -> lowered result``."""

    def implementation(_typing_context, *_argument_types):
        def codegen(context, builder, _signature, arguments):
            result = generate(builder, arguments)
            return context.get_dummy_value() if result is None else result

        return result_type(*argument_types), codegen

    return intrinsic(_named_arguments(implementation, len(argument_types)))


def _explode(builder, numba_argument_type, value):
    if isinstance(numba_argument_type, types.UniTuple):
        return [builder.extract_value(value, i) for i in range(numba_argument_type.count)]
    return value


def _implode(builder, values):
    return pack_array(builder, values) if isinstance(values, list) else values


@cache
def intrinsic_for(name: str, **immediates: int):
    """Return the device function for the row ``name`` (immediates by keyword).

    It takes the row's inputs in order and returns its output, a tuple if there are several registers, or nothing.
    """
    row = instruction(name, **immediates)
    argument_types = tuple(numba_type(operand) for operand in row.in_operands)
    outputs = row.out_operands
    if not outputs:
        result_type = types.void
    elif len(outputs) == 1:
        result_type = numba_type(outputs[0])
    else:
        result_type = types.UniTuple(NUMBA_TYPE[outputs[0].kind], sum(o.registers for o in outputs))

    def generate(builder, arguments):
        exploded = [_explode(builder, t, a) for t, a in zip(argument_types, arguments, strict=True)]
        results = emit(builder, row, exploded)
        if not results:
            return None
        return _implode(builder, results[0] if len(results) == 1 else results)

    return _device_function(result_type, argument_types, generate)


class Emitter:
    """Emits table rows at compile time: ``e.fma_x2(a, b, c)`` returns the value of a new register.

    Immediates go by keyword. A form with one output returns it (a list for a vector), with several a tuple.
    """

    def __init__(self, builder):
        self.builder = builder

    def __getattr__(self, name):
        def call(*arguments, **immediates):
            results = emit(self.builder, instruction(name, **immediates), list(arguments))
            if not results:
                return None
            return results[0] if len(results) == 1 else tuple(results)

        return call

    @staticmethod
    def f32(value: float):
        """Return a float constant."""
        return ir.Constant(ir.FloatType(), value)

    @staticmethod
    def u32(value: int):
        """Return a 32-bit integer constant."""
        return ir.Constant(ir.IntType(32), value)

    def offset(self, address, amount: int):
        """Return ``address + amount`` (32-bit)."""
        return self.builder.add(address, self.u32(amount)) if amount else address

    def tied(self, name: str, values: list) -> list:
        """Emit the operand-less row ``name`` and pass ``values`` through it unchanged.

        Nothing that uses the returned registers can be moved above the instruction: how a wait for an asynchronous
        load is tied to the registers that it makes valid.
        """
        row = instruction(name)
        n = len(values)
        asm = ir.InlineAsm(
            ir.FunctionType(ir.LiteralStructType([v.type for v in values]), [v.type for v in values]),
            row.text,
            ",".join(["=f"] * n + [str(i) for i in range(n)] + ["~{memory}"]),
            side_effect=True,
        )
        call = self.builder.call(asm, values, attrs=("convergent",) if row.convergent else ())
        return [self.builder.extract_value(call, i) for i in range(n)]


def unrolled(result_type, *argument_types):
    """Decorate ``f(e, *args)`` to become a device function whose body is emitted while the kernel is compiled.

    Tuple arguments arrive as lists of registers; a returned list becomes a tuple.
    """

    def decorate(function):
        def generate(builder, arguments):
            exploded = [_explode(builder, t, a) for t, a in zip(argument_types, arguments, strict=True)]
            result = function(Emitter(builder), *exploded)
            return None if result is None else _implode(builder, result)

        return _device_function(result_type, argument_types, generate)

    return decorate


def marker(text: str):
    """Return a device function that leaves the comment ``// fa4: text`` in the PTX and no machine code.

    The emulator reads it (roles, stages of its timeline); ptxas drops it.
    """

    def generate(builder, _arguments):
        asm = ir.InlineAsm(ir.FunctionType(ir.VoidType(), []), f"// fa4: {text}", "", side_effect=True)
        builder.call(asm, [])

    return _device_function(types.void, (), generate)


@intrinsic
def array_address(_typing_context, array):
    """Return the generic address of an array's first element (uint64)."""

    def codegen(context, builder, signature, arguments):
        struct = create_struct_proxy(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(struct.data, ir.IntType(64))

    return types.uint64(array), codegen
