"""Assembles the sm_100a forward kernel from its roles: 512 threads, 16 warps, one work tile (two Q tiles)."""

from ...config import FA4Config
from ...ptx.numba_adapter import array_address, intrinsic_for, marker, unrolled
from ..common.device import F32, I32, U32, U64, types
from ..common.scheduler import decode_tile, kv_tile_range
from .correction import make_correction
from .geometry import FIRST_CORRECTION_WARP, LOAD_WARP, MMA_WARP, NUM_THREADS, STORE_WARP, Geometry
from .load import make_load
from .mma import make_mma
from .softmax import make_softmax
from .store import make_store

# Parameters in order. The four tensor maps are declared as integers here; the toolchain turns them into 128-byte
# by-value parameters, whose address the kernel then sees.
PARAMETERS = (
    ("map_q", U64),
    ("map_k", U64),
    ("map_v", U64),
    ("map_o", U64),
    ("lse", U64),  # address of f32 (batch, q head, query)
    ("seq_q", I32),
    ("seq_k", I32),
    ("num_tiles_m", I32),  # work tiles along the queries
    ("num_tile_heads", I32),  # kv heads if the group is fused into the tile, else q heads
    ("num_sequences", I32),  # batch · tile heads
    ("sequences_per_group", I32),  # how many of them run together
    ("scale_log2", F32),  # softmax scale · log2(e)
)
TENSOR_MAP_PARAMETERS = ("map_q", "map_k", "map_v", "map_o")


def make_init_barriers(g: Geometry):
    """Return ``init_barriers(smem)``: initialise every barrier of the barrier map."""

    @unrolled(types.void, U32)
    def init_barriers(e, smem):
        for region in g.cfg.barrier_map():
            if region.arrivals:
                e.mbarrier_init(e.offset(smem, region.start), e.u32(region.arrivals))

    return init_barriers


def build_kernel(cfg: FA4Config, *, causal: bool):
    """Return (kernel, signature, threads per CTA) of the forward pass for ``cfg``, to be compiled by ``cuda.compile_ptx``.

    Raises
    ------
    UnsupportedError
        If the 2Q kernel cannot serve ``cfg``; the message lists every reason with its remedy.
    """
    from numba import cuda

    g = Geometry(cfg, causal)
    init_barriers = make_init_barriers(g)
    load, mma, softmax, correction, store = (
        make(g) for make in (make_load, make_mma, make_softmax, make_correction, make_store)
    )
    tmem_alloc, tmem_dealloc = (
        intrinsic_for("tmem_alloc", columns=512),
        intrinsic_for("tmem_dealloc", columns=512),
    )
    relinquish, elect = intrinsic_for("tmem_relinquish"), intrinsic_for("elect_one")
    fence_init, prefetch = intrinsic_for("fence_mbarrier_init"), intrinsic_for("prefetch_tensormap")
    fence_before, fence_after = intrinsic_for("tmem_fence_before"), intrinsic_for("tmem_fence_after")
    broadcast, warp_sync = intrinsic_for("broadcast_lane0"), intrinsic_for("warp_sync")
    divide = intrinsic_for("div_u32")
    shared_address, load_shared = intrinsic_for("shared_address"), intrinsic_for("shared_load_u32")
    budget = g.registers
    softmax_registers = intrinsic_for("registers_increase", registers=budget.softmax)
    correction_registers = intrinsic_for("registers_decrease", registers=budget.correction)
    other_registers = intrinsic_for("registers_decrease", registers=budget.other)
    roles = ("softmax0", "softmax1", "correction", "mma", "load", "store", "idle")
    is_softmax0, is_softmax1, is_correction, is_mma, is_load, is_store, is_idle = (
        marker(f"role={role}") for role in roles
    )
    tmem_slot = U32(g.smem("tmem_slot"))
    heads_per_tile, tokens_per_tile = I32(g.heads_per_tile), I32(g.tokens_per_q_tile)
    heads_per_kv = I32(cfg.group // g.heads_per_tile)  # tile heads that share a kv head
    keys = I32(cfg.BN)

    def fa4_forward(
        map_q, map_k, map_v, map_o, lse, seq_q, seq_k, num_tiles_m, num_tile_heads, num_sequences, sequences_per_group,
        scale_log2,
    ):  # fmt: skip
        smem = shared_address(array_address(cuda.shared.array(0, types.uint8, alignment=1024)))
        thread = I32(cuda.threadIdx.x)
        warp = I32(broadcast(U32(thread >> 5)))  # the compiler now knows that it is uniform

        # -- prologue: barriers, tensor memory, this CTA's share of the work
        if warp == 0:
            if elect() != U32(0):
                init_barriers(smem)
                fence_init()
            warp_sync()
        elif warp == MMA_WARP:
            tmem_alloc(U32(smem + tmem_slot))
            relinquish()
        elif warp == LOAD_WARP:
            if elect() != U32(0):
                prefetch(map_q)
                prefetch(map_k)
                prefetch(map_v)
                prefetch(map_o)
            warp_sync()
        fence_before()
        cuda.syncthreads()
        fence_after()
        tmem = load_shared(U32(smem + tmem_slot))

        tile, sequence = decode_tile(
            I32(cuda.blockIdx.x), num_tiles_m, num_sequences, sequences_per_group, causal
        )
        batch = I32(divide(U32(sequence), U32(num_tile_heads)))
        tile_head = I32(sequence - I32(batch * num_tile_heads))
        first_token = I32(tile * I32(2 * tokens_per_tile))
        last_token = I32(min(I32(first_token + I32(2 * tokens_per_tile)), seq_q) - 1)
        last_tile, num_tiles = kv_tile_range(last_token, seq_q, seq_k, causal, keys)

        # -- roles
        if warp < FIRST_CORRECTION_WARP:
            softmax_registers()
            stage = I32(warp >> 2)
            if stage == 0:
                is_softmax0()
            else:
                is_softmax1()
            row = I32(thread & 127)
            stage_token = I32(first_token + I32(stage * tokens_per_tile))
            token = I32(stage_token + I32(divide(U32(row), U32(heads_per_tile))))
            warp_token = I32(stage_token + I32(divide(U32(row & 96), U32(heads_per_tile))))
            first_head = I32(tile_head * heads_per_tile)
            head = I32(first_head + I32(row - I32(I32(token - stage_token) * heads_per_tile)))
            num_heads = U64(num_tile_heads) * U64(heads_per_tile)
            lse_index = U64((U64(batch) * num_heads + U64(head)) * U64(seq_q) + U64(token))
            softmax(
                smem, tmem, stage, warp, row, token, warp_token, seq_q, seq_k, last_tile, num_tiles, scale_log2, lse,
                lse_index,
            )  # fmt: skip
        elif warp < MMA_WARP:
            correction_registers()
            is_correction()
            correction(smem, tmem, warp, I32(thread & 127), num_tiles)
        else:
            other_registers()
            if warp == MMA_WARP:
                is_mma()
                if elect() != U32(0):
                    mma(smem, tmem, num_tiles)
                warp_sync()
            elif warp == LOAD_WARP:
                is_load()
                if elect() != U32(0):
                    kv_head = I32(divide(U32(tile_head), U32(heads_per_kv)))
                    load(
                        smem,
                        map_q,
                        map_k,
                        map_v,
                        first_token,
                        tile_head,
                        kv_head,
                        batch,
                        last_tile,
                        num_tiles,
                    )
                warp_sync()
            elif warp == STORE_WARP:
                is_store()
                store(smem, map_o, first_token, tile_head, batch)
            else:
                is_idle()

        # -- epilogue: nobody touches tensor memory any more
        fence_before()
        cuda.syncthreads()
        if warp == MMA_WARP:
            fence_after()
            tmem_dealloc(tmem)

    signature = types.void(*(kind for _, kind in PARAMETERS))
    return fa4_forward, signature, NUM_THREADS
