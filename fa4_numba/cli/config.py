"""``config``: derive and show a layout."""

import json

from ..config import FA4Config
from .text import region_table


def run(arguments) -> int:
    """Print the config; exit status 1 if it is not supported."""
    cfg = FA4Config(
        qkv_dtype=arguments.dtype,
        num_q_heads=arguments.q_heads,
        group=arguments.group,
        qk_depth=arguments.qk_dim,
        ov_depth=arguments.v_dim or arguments.qk_dim,
        BM=arguments.bm,
        bn_cap=arguments.bn_cap,
        page_size=arguments.page_size,
    )
    if arguments.json:
        print(json.dumps(cfg.to_dict() | {"supported": cfg.supported()}, indent=2))
    elif arguments.why:
        print(cfg.explain())
    else:
        print("\n".join(f"{name:>20} = {value}" for name, value in cfg.to_dict().items()))
        if cfg.supported():
            print(region_table("shared memory", cfg.smem_map(), "bytes"))
            print(region_table("tensor memory", cfg.tmem_map(), "columns"))
        else:
            print("not supported:\n  " + "\n  ".join(cfg.why_unsupported()))
    return 0 if cfg.supported() else 1
