"""What each unit of one SM can do, per architecture. Every number has its source: our own measurement, or who says it.

*Measured*: ``bench/hopper/probes.py`` on one H200 (``bench/data/hopper_times.json``); the probe's name follows.
*FA4*: the FlashAttention-4 authors, together.ai/blog/flashattention-4: B200 has 2.25 PFLOP/s of dense bf16; exponential
units and shared memory bandwidth as Hopper. *Semi*: SemiAnalysis, "Dissecting Nvidia Blackwell", newsletter.semianalysis.com:
multiplies with both operands in shared memory and N < 128 are bound by its 128 bytes a cycle. *Guide*: CUDA C++ Programming
Guide. What nobody says is *assumed*, and says so.
"""

from dataclasses import dataclass, replace

from ...errors import LaunchError


@dataclass(frozen=True)
class Rate:
    """What an instruction asks of its sub-core: issue slots, cycles of one pipe, and cycles until its result is ready."""

    slots: int
    pipe: str | None
    busy: int
    latency: int


@dataclass(frozen=True)
class TimingArch:
    """Cycles, and bytes per cycle, of one SM.

    Attributes
    ----------
    rates : dict
        Kind of lane-wise instruction → :class:`Rate`; ``costs.py`` says which opcode is of which kind.
    taken_branch : int
        From a taken branch to the warp's next instruction.
    shared_latency, matrix_latency : int
        ``ld.shared``, ``ldmatrix`` → use. One wavefront (128 bytes) a cycle and SM; two cycles a wavefront and sub-core.
    l1_latency, l2_latency : int
        ``ld.global`` → use, where the line is in L1 (``.ca``) or in L2.
    l2_port : float
        Bytes per cycle that one SM can get from L2.
    try_wait, arrive : int
        ``mbarrier.try_wait`` → its predicate; issue of an arrival → the next instruction that needs it done.
    wake : dict
        Kind of wait → cycles from the event to the waiting warp's next instruction.
    mma_width : int
        Columns of one tensor-core instruction (of 32 bytes depth) that are done per cycle.
    mma_rows : int
        Rows of A that an instruction reads from shared memory at full rate.
    mma_queue : int
        Multiplies of a warp that a tensor core takes before it has begun them: with so many the warp waits at issue.
        Assumed: 1, of 1, 2, 4 and 8 the one under which ``bench/hopper``'s attention comes closest to the GPU's time.
    mma_latency : int
        From the end of the last multiply to its results and its commit being seen.
    tma_latency, tma_rate, tma_box : float
        A load: latency, bytes per cycle after that, fewest cycles between two.
    store_latency, store_rate : float
        The same of a bulk store.
    tmem_latency, tmem_rate : float
        ``tcgen05.ld`` → use; 32-bit columns of a warp's lanes per cycle and sub-core.
    sms, clock_ghz, hbm_bytes_per_ns, l2_bytes_per_cycle : float
        Of the whole GPU.
    """

    name: str
    rates: dict
    taken_branch: int
    shared_latency: int
    matrix_latency: int
    l1_latency: int
    l2_latency: int
    l2_port: float
    try_wait: int
    arrive: int
    wake: dict
    mma_width: int
    mma_rows: int
    mma_latency: int
    mma_queue: int
    tma_latency: float
    tma_rate: float
    tma_box: float
    store_latency: float
    store_rate: float
    tmem_latency: int
    tmem_rate: float
    sms: int
    clock_ghz: float
    hbm_bytes_per_ns: float
    l2_bytes_per_cycle: float


_RATES = {
    "fma": Rate(1, "fma", 1, 4),  # measured: "chain fma.f32", "wide fma.f32 x16"
    "fma pair": Rate(1, "fma", 2, 4),  # sm_100's f32x2: 128 lanes of f32 a cycle and SM (Guide), one slot
    "half fma": Rate(1, "fma", 1, 8),  # "chain/wide fma.bf16x2": the chain alternates between two pipes
    "alu": Rate(1, "alu", 2, 4),  # "chain/wide lop3.b32", max.f32, selp, prmt, shf, cvt.bf16x2, cvt.f32.s32
    "either": Rate(1, "either", 2, 4),  # integer additions: on ALU, or as multiply-adds
    "imad": Rate(1, "fma", 2, 4),  # "chain/wide mad.s32"
    # "chain/wide ex2.f32", lg2, tanh, popc, cvt.s32.f32: 16 lanes a cycle and SM
    "mufu": Rate(1, "mufu", 8, 17),
    "vote": Rate(1, "alu", 2, 13),  # "chain vote" less its setp
    "redux": Rate(1, "mufu", 8, 44),  # "chain/wide redux"
    "shuffle": Rate(1, None, 0, 24),  # "chain shfl"; one a cycle and SM, as "wide shfl x16"
    "double": Rate(1, "fma", 2, 8),  # half the f32 rate (Guide, "Arithmetic Instructions"); latency assumed
}

SM_90 = TimingArch(
    name="sm_90",
    rates=_RATES,
    taken_branch=10,  # "wide fma.f32 x4": 44 cycles for 35 instructions
    shared_latency=23,  # "chain ld.shared"
    matrix_latency=30,  # "ldmatrix.x4 chain x1" less the addition in it
    l1_latency=33,  # "chain ld.global L1" less the addition in it
    l2_latency=281,  # "chain ld.global L2" less the additions in it
    l2_port=104.0,  # as tma_rate
    try_wait=27,  # "mbarrier alone"
    arrive=27,  # "mbarrier alone"
    # "mbarrier ping-pong", "bar ping-pong" and "bar.sync", "wgmma … batch 1"; a cluster's barrier: assumed
    wake={"PhaseWait": 22, "NamedWait": 16, "GroupWait": 20, "ClusterWait": 180},
    mma_width=2,  # "wgmma SS n256 batch 8 groups 2": 128 cycles an instruction, 4096 FLOP a cycle
    mma_rows=64,
    mma_latency=22,  # "wgmma SS n128 batch 1 groups 1"
    mma_queue=1,
    tma_latency=224,  # "TMA load 1024 B x1"
    tma_rate=104.0,  # "TMA load 16384 B x8": 158 cycles each
    tma_box=16,  # "TMA load 1024 B x8"
    store_latency=9,  # "TMA store 1024 B x1"
    store_rate=31.2,  # "TMA store 16384 B x4"
    tmem_latency=0,
    tmem_rate=1.0,
    sms=132,
    clock_ghz=1.98,  # what the driver reports; under load it falls: see the calibration
    hbm_bytes_per_ns=3820.0,  # fitted: what the kernel "copy" reaches, 79 % of the bus
    l2_bytes_per_cycle=5120.0,  # A100's white paper (L2 read bandwidth); nothing is published for Hopper
)

# everything that is not named here is Hopper's, measured there: nothing better is known
SM_100 = replace(
    SM_90,
    name="sm_100",
    mma_width=2,  # of 128 rows instead of 64: 8192 FLOP a cycle and SM, which gives FA4's 2.25 PFLOP/s at 1.85 GHz
    mma_rows=128,  # 4 KB of A an instruction: N < 128 is then bound by shared memory, as Semi measured
    tmem_latency=23,  # assumed: Hopper's shared memory latency
    tmem_rate=1.0,  # assumed: 128 bytes a cycle and sub-core
    sms=148,  # B200, as cudaGetDeviceProperties reports it
    clock_ghz=1.85,  # see mma_width
    hbm_bytes_per_ns=8000.0 * 0.79,  # 8 TB/s (B200 data sheet) at the share that Hopper reaches
    l2_bytes_per_cycle=5120.0 * 148 / 132,  # assumed: Hopper's per SM
)
KNOWN = {"sm_90": SM_90, "sm_100": SM_100}


def timing_arch(target: str) -> TimingArch:
    """Return the numbers for a PTX target such as "sm_90a" or "sm_100a".

    Raises
    ------
    LaunchError
        If there are none.
    """
    name = target.rstrip("af")
    if name == "sm_103":
        name = "sm_100"
    if name not in KNOWN:
        raise LaunchError(
            f"the timing model has no numbers for {target!r}; it has {sorted(KNOWN)}: schedule='model:sm_90' takes those"
        )
    return KNOWN[name]
