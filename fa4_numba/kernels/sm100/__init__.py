"""The sm_100a (Blackwell) forward kernel: two Q tiles per CTA, one module per warp role."""
