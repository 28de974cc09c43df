"""Rows for floating-point arithmetic, packing and conversion. All of them are pure."""

from .instruction import Instruction

_FLOAT = "Floating Point Instructions"
_MOVE = "Data Movement and Conversion Instructions: mov"
_CVT = "Data Movement and Conversion Instructions: cvt"


def _pure(name, text, outputs, inputs, section=_FLOAT, since="sm_90"):
    return Instruction(name, text, outputs, inputs, section, pure=True, since=since)


ROWS = (
    _pure("exp2_approx", "ex2.approx.ftz.f32 $d, $a;", "d:f32", "a:f32"),
    _pure("log2_approx", "lg2.approx.ftz.f32 $d, $a;", "d:f32", "a:f32"),
    _pure("rcp_approx", "rcp.approx.ftz.f32 $d, $a;", "d:f32", "a:f32"),
    _pure("tanh_approx", "tanh.approx.f32 $d, $a;", "d:f32", "a:f32"),
    _pure("fma", "fma.rn.ftz.f32 $d, $a, $b, $c;", "d:f32", "a:f32 b:f32 c:f32"),
    _pure("mul", "mul.rn.ftz.f32 $d, $a, $b;", "d:f32", "a:f32 b:f32"),
    _pure("add", "add.rn.ftz.f32 $d, $a, $b;", "d:f32", "a:f32 b:f32"),
    _pure("sub", "sub.rn.ftz.f32 $d, $a, $b;", "d:f32", "a:f32 b:f32"),
    # the FMNMX family: without .NaN a NaN operand is ignored, with it the result is NaN
    _pure("max", "max.f32 $d, $a, $b;", "d:f32", "a:f32 b:f32"),
    _pure("max_nan", "max.NaN.f32 $d, $a, $b;", "d:f32", "a:f32 b:f32"),
    _pure("max3", "max.f32 $d, $a, $b, $c;", "d:f32", "a:f32 b:f32 c:f32", since="sm_100a"),
    _pure("max3_nan", "max.NaN.f32 $d, $a, $b, $c;", "d:f32", "a:f32 b:f32 c:f32", since="sm_100a"),
    # two f32 in one 64-bit register: one issue slot for two results
    _pure("pack", "mov.b64 $d, {$lo, $hi};", "d:f32x2", "lo:f32 hi:f32", _MOVE),
    _pure("unpack", "mov.b64 {$lo, $hi}, $a;", "lo:f32 hi:f32", "a:f32x2", _MOVE),
    _pure(
        "fma_x2", "fma.rn.ftz.f32x2 $d, $a, $b, $c;", "d:f32x2", "a:f32x2 b:f32x2 c:f32x2", since="sm_100a"
    ),
    _pure("mul_x2", "mul.rn.ftz.f32x2 $d, $a, $b;", "d:f32x2", "a:f32x2 b:f32x2", since="sm_100a"),
    _pure("add_x2", "add.rn.ftz.f32x2 $d, $a, $b;", "d:f32x2", "a:f32x2 b:f32x2", since="sm_100a"),
    _pure("sub_x2", "sub.rn.ftz.f32x2 $d, $a, $b;", "d:f32x2", "a:f32x2 b:f32x2", since="sm_100a"),
    _pure("add_round_down_x2", "add.rm.ftz.f32x2 $d, $a, $b;", "d:f32x2", "a:f32x2 b:f32x2", since="sm_100a"),
    # first PTX source operand goes to the upper half: $lo is the element with the lower index
    _pure("to_bf16x2", "cvt.rn.bf16x2.f32 $d, $hi, $lo;", "d:u32", "lo:f32 hi:f32", _CVT),
    _pure("to_f16x2", "cvt.rn.f16x2.f32 $d, $hi, $lo;", "d:u32", "lo:f32 hi:f32", _CVT),
    _pure(
        "to_e4m3x2",
        "{ .reg .b16 t; cvt.rn.satfinite.e4m3x2.f32 t, $hi, $lo; cvt.u32.u16 $d, t; }",
        "d:u32",
        "lo:f32 hi:f32",
        _CVT,
    ),
    _pure(
        "to_e5m2x2",
        "{ .reg .b16 t; cvt.rn.satfinite.e5m2x2.f32 t, $hi, $lo; cvt.u32.u16 $d, t; }",
        "d:u32",
        "lo:f32 hi:f32",
        _CVT,
    ),
    _pure("exp2_bf16x2", "ex2.approx.ftz.bf16x2 $d, $a;", "d:u32", "a:u32"),
    # bits(p) + (bits(r) << 23): adds the integer in r's low bits to p's exponent
    _pure(
        "add_to_exponent",
        "{ .reg .b32 t, u; mov.b32 t, $r; mov.b32 u, $p; shl.b32 t, t, 23; add.s32 u, u, t; mov.b32 $d, u; }",
        "d:f32",
        "p:f32 r:f32",
    ),
    _pure("bits_of", "mov.b32 $d, $a;", "d:u32", "a:f32", _MOVE),
    _pure("float_of", "mov.b32 $d, $a;", "d:f32", "a:u32", _MOVE),
    # select a where bit `bit` of mask is set, else b
    _pure(
        "select_bit",
        "{ .reg .pred p; .reg .b32 t; and.b32 t, $mask, <bit>; setp.ne.b32 p, t, 0; selp.f32 $d, $a, $b, p; }",
        "d:f32",
        "mask:u32 a:f32 b:f32",
        "Comparison and Selection Instructions",
    ),
    # Numba divides 32-bit integers in 64 bits, by a call; these are 32-bit and inline
    _pure("div_u32", "div.u32 $d, $a, $b;", "d:u32", "a:u32 b:u32", "Integer Arithmetic Instructions: div"),
    # clamping shift, unlike LLVM's: a shift by 32 or more gives 0
    _pure("shl_clamp", "shl.b32 $d, $a, $n;", "d:u32", "a:u32 n:u32", "Logic and Shift Instructions"),
    # i + 1 that the optimiser cannot see through: a loop that counts with it is not unrolled, which would
    # multiply a 500-instruction body and cost registers
    Instruction("next_index", "add.s32 $d, $a, 1;", "d:i32", "a:i32", "Integer Arithmetic Instructions: add"),
)
