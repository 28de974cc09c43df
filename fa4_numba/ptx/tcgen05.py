"""Rows for the fifth-generation tensor core: tensor memory, matrix multiply-accumulate, and their ordering."""

from .instruction import Instruction

_T = "TensorCore 5th Generation Family Instructions: "


def _warp(name, text, outputs="", inputs="", section="", **more):
    return Instruction(
        name, text, outputs, inputs, _T + section, convergent=True, scope="warp", since="sm_100a", **more
    )


def _thread(name, text, outputs="", inputs="", section=""):
    return Instruction(name, text, outputs, inputs, _T + section, scope="thread", since="sm_100a")


def _mma(name, variant, a_text, a_operand, tail="accumulate_p", extra=""):
    """One thread issues; the enable-input-d predicate is 1 to accumulate and 0 to overwrite D."""
    return _thread(
        name,
        "{ .reg .pred accumulate_p; setp.ne.b32 accumulate_p, $accumulate, 0; "
        f"tcgen05.mma{variant} [$d], {a_text}, $b_desc, $instr_desc, {tail}; }}",
        "",
        f"d:u32 {a_operand} b_desc:u64 instr_desc:u32 accumulate:u32{extra}",
        "tcgen05.mma",
    )


def _mma_family():
    kinds = {"f16": "f16", "tf32": "tf32", "f8f6f4": "f8f6f4", "i8": "i8"}
    for short, kind in kinds.items():
        for group in (1, 2):
            variant = f".cta_group::{group}.kind::{kind}"
            suffix = "" if group == 1 else "_pair"
            yield _mma(f"mma_{short}_ss{suffix}", variant, "$a_desc", "a_desc:u64")
            yield _mma(f"mma_{short}_ts{suffix}", variant, "[$a_tmem]", "a_tmem:u32")
        yield _mma(f"mma_ws_{short}_ss", f".ws.cta_group::1.kind::{kind}", "$a_desc", "a_desc:u64")
        yield _mma(f"mma_ws_{short}_ts", f".ws.cta_group::1.kind::{kind}", "[$a_tmem]", "a_tmem:u32")
    masks = " m0:u32 m1:u32 m2:u32 m3:u32"
    yield _mma(
        "mma_f16_ss_masked",
        ".cta_group::1.kind::f16",
        "$a_desc",
        "a_desc:u64",
        "{$m0, $m1, $m2, $m3}, accumulate_p",
        masks,
    )
    yield _mma(
        "mma_mxf8f6f4_ss",
        ".cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X",
        "$a_desc",
        "a_desc:u64",
        "[$scale_a], [$scale_b], accumulate_p",
        " scale_a:u32 scale_b:u32",
    )
    yield _mma(
        "mma_mxf4nvf4_ss",
        ".cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X",
        "$a_desc",
        "a_desc:u64",
        "[$scale_a], [$scale_b], accumulate_p",
        " scale_a:u32 scale_b:u32",
    )


def _load_store():
    shapes = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4}
    for shape, per in shapes.items():
        for times in (1, 2, 4, 8, 16, 32, 64):
            n = times * per
            if n > 64:
                continue  # more does not fit the 128 registers a 512-thread kernel enters with
            form = f"sync.aligned.{shape}.x{times}.b32"
            kind = "f32" if shape == "32x32b" else "u32"
            yield _warp(
                f"tmem_load_{shape}_x{times}",
                f"tcgen05.ld.{form} $d, [$taddr];",
                f"d:{kind}[{n}]",
                "taddr:u32",
                "tcgen05.ld",
            )
            yield _warp(
                f"tmem_store_{shape}_x{times}",
                f"tcgen05.st.{form} [$taddr], $a;",
                "",
                f"taddr:u32 a:u32[{n}]",
                "tcgen05.st",
            )
    yield _warp(
        "tmem_load_16x32bx2_x32",
        "tcgen05.ld.sync.aligned.16x32bx2.x32.b32 $d, [$taddr], <half_split>;",
        "d:u32[32]",
        "taddr:u32",
        "tcgen05.ld",
    )
    yield _warp(
        "tmem_load_pack16_x32",
        "tcgen05.ld.sync.aligned.32x32b.x32.pack::16b.b32 $d, [$taddr];",
        "d:u32[32]",
        "taddr:u32",
        "tcgen05.ld",
    )
    yield _warp(
        "tmem_store_unpack16_x32",
        "tcgen05.st.sync.aligned.32x32b.x32.unpack::16b.b32 [$taddr], $a;",
        "",
        "taddr:u32 a:u32[32]",
        "tcgen05.st",
    )
    for n in (16, 32, 64, 128):  # f32 registers stored as they are
        if n <= 64:
            yield _warp(
                f"tmem_store_f32_x{n}",
                f"tcgen05.st.sync.aligned.32x32b.x{n}.b32 [$taddr], $a;",
                "",
                f"taddr:u32 a:f32[{n}]",
                "tcgen05.st",
            )


def _copy():
    for shape in ("128x256b", "4x256b", "128x128b", "64x128b.warpx2::02_13", "32x128b.warpx4"):
        name = "tmem_copy_" + shape.replace("::", "_").replace(".", "_")
        yield _thread(
            name, f"tcgen05.cp.cta_group::1.{shape} [$taddr], $desc;", "", "taddr:u32 desc:u64", "tcgen05.cp"
        )


ROWS = (
    _warp(
        "tmem_alloc",
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [$slot], <columns>;",
        "",
        "slot:u32",
        "tcgen05.alloc",
    ),
    _warp(
        "tmem_relinquish",
        "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
        section="tcgen05.relinquish_alloc_permit",
    ),
    _warp(
        "tmem_dealloc",
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 $taddr, <columns>;",
        "",
        "taddr:u32",
        "tcgen05.dealloc",
    ),
    *_mma_family(),
    _thread(
        "mma_commit",
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [$bar];",
        "",
        "bar:u32",
        "tcgen05.commit",
    ),
    _thread(
        "mma_commit_pair",
        "{ .reg .b16 m; cvt.u16.u32 m, $mask; "
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [$bar], m; }",
        "",
        "bar:u32 mask:u32",
        "tcgen05.commit",
    ),
    *_load_store(),
    *_copy(),
    _warp("tmem_wait_load", "tcgen05.wait::ld.sync.aligned;", section="tcgen05.wait"),
    _warp("tmem_wait_store", "tcgen05.wait::st.sync.aligned;", section="tcgen05.wait"),
    _thread("tmem_fence_before", "tcgen05.fence::before_thread_sync;", section="tcgen05.fence"),
    _thread("tmem_fence_after", "tcgen05.fence::after_thread_sync;", section="tcgen05.fence"),
)
