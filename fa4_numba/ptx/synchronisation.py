"""Rows for mbarriers, named barriers, fences, register budgets and warp-level exchange."""

from .instruction import Instruction

_MBAR = "Parallel Synchronization and Communication Instructions: mbarrier"
_BAR = "Parallel Synchronization and Communication Instructions: bar, barrier"
_FENCE = "Parallel Synchronization and Communication Instructions: membar, fence"


def _row(name, text, outputs="", inputs="", section=_MBAR, **more):
    return Instruction(name, text, outputs, inputs, section, **more)


def _warp(name, text, outputs="", inputs="", section="", **more):
    return Instruction(name, text, outputs, inputs, section, convergent=True, scope="warp", **more)


ROWS = (
    _row("mbarrier_init", "mbarrier.init.shared::cta.b64 [$bar], $count;", "", "bar:u32 count:u32"),
    _row("mbarrier_arrive", "mbarrier.arrive.shared::cta.b64 _, [$bar];", "", "bar:u32"),
    _row(
        "mbarrier_arrive_expect_tx",
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$bar], $bytes;",
        "",
        "bar:u32 bytes:u32",
    ),
    # Blocks until the phase with the given parity has completed.
    _row(
        "mbarrier_wait",
        "{\n.reg .pred done;\nwait_@uid:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [$bar], $parity;\n"
        "@!done bra wait_@uid;\n}",
        "",
        "bar:u32 parity:u32",
    ),
    _row(
        "mbarrier_wait_cluster",
        "{\n.reg .pred done;\nwait_@uid:\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [$bar], $parity;\n"
        "@!done bra wait_@uid;\n}",
        "",
        "bar:u32 parity:u32",
    ),
    _row("mapa", "mapa.shared::cluster.u32 $d, $addr, $cta;", "d:u32", "addr:u32 cta:u32", "mapa", pure=True),
    _row(
        "mbarrier_arrive_cluster",
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$bar];",
        "",
        "bar:u32",
    ),
    _row("fence_mbarrier_init", "fence.mbarrier_init.release.cluster;", section=_FENCE),
    _row("fence_proxy_async", "fence.proxy.async.shared::cta;", section=_FENCE),
    _row(
        "fence_proxy_tensormap",
        "fence.proxy.tensormap::generic.acquire.gpu [$map], 128;",
        "",
        "map:u64",
        _FENCE,
    ),
    # bar.sync/arrive without .aligned would be barrier.sync; both count whole warps.
    Instruction(
        "named_barrier_sync",
        "barrier.sync.aligned $id, $threads;",
        "",
        "id:u32 threads:u32",
        _BAR,
        convergent=True,
        scope="cta",
    ),
    Instruction(
        "named_barrier_arrive",
        "barrier.arrive.aligned $id, $threads;",
        "",
        "id:u32 threads:u32",
        _BAR,
        convergent=True,
        scope="cta",
    ),
    _warp("warp_sync", "bar.warp.sync 0xffffffff;", section=_BAR),
    _warp(
        "elect_one",
        "{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 $d, 1, 0, p; }",
        "d:u32",
        "",
        "Parallel Synchronization and Communication Instructions: elect.sync",
    ),
    _warp(
        "broadcast_lane0",
        "shfl.sync.idx.b32 $d, $a, 0, 0x1f, 0xffffffff;",
        "d:u32",
        "a:u32",
        "Data Movement and Conversion Instructions: shfl.sync",
    ),
    _warp(
        "vote_any",
        "{ .reg .pred p, q; setp.ne.b32 p, $a, 0; vote.sync.any.pred q, p, 0xffffffff; selp.b32 $d, 1, 0, q; }",
        "d:u32",
        "a:u32",
        "Parallel Synchronization and Communication Instructions: vote.sync",
    ),
    _warp(
        "redux_max",
        "redux.sync.max.NaN.f32 $d, $a, 0xffffffff;",
        "d:f32",
        "a:f32",
        "Parallel Synchronization and Communication Instructions: redux.sync",
        since="sm_100a",
    ),
    _warp(
        "registers_increase",
        "setmaxnreg.inc.sync.aligned.u32 <registers>;",
        section="Miscellaneous Instructions: setmaxnreg",
        since="sm_90a",
    ),
    _warp(
        "registers_decrease",
        "setmaxnreg.dec.sync.aligned.u32 <registers>;",
        section="Miscellaneous Instructions: setmaxnreg",
        since="sm_90a",
    ),
    _row("launch_dependents", "griddepcontrol.launch_dependents;", section="griddepcontrol"),
    _row("grid_dependency_wait", "griddepcontrol.wait;", section="griddepcontrol"),
    _row(
        "try_cancel",
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [$dst], [$bar];",
        "",
        "dst:u32 bar:u32",
        "clusterlaunchcontrol.try_cancel",
        since="sm_100a",
    ),
)
