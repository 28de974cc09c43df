#!/usr/bin/env bash
# Makes an environment for the peers' tests that CI does not run:
#   tests/peers/make_env.sh fa4 [folder]       flash-attn-4 with CuTe DSL and torch for the CPU (about 2.5 GB)
#   tests/peers/make_env.sh triton36 [folder]  Triton 3.6
# and says how to run them. No GPU, no CUDA toolkit and no C compiler is needed.
set -euo pipefail
kind=${1:?fa4 or triton36}
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=${2:-$root/build/peers-$kind}
case $kind in
    fa4) packages=(flash-attn-4==4.0.0b36 nvidia-cutlass-dsl==4.8.1 torch==2.13.0 triton==3.9.0) mark=peers_fa4 ;;
    triton36) packages=(triton==3.6.0) mark=peers_triton ;;
    *) echo "unknown environment $kind: take fa4 or triton36" >&2 && exit 2 ;;
esac
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}" 'numpy>=2.0,<2.5' ml_dtypes llvmlite pytest
echo "made $folder; in $root run"
echo "  PYTHONPATH=. $folder/bin/python -m pytest tests/peers -m $mark   # the tests"
echo "  PYTHONPATH=. $folder/bin/python tests/peers/table.py             # its part of docs/peers.md"
