"""The architecture numbers against facts that do not come from the module itself."""

import dataclasses
import re

import pytest

from fa4_numba.errors import ConfigError
from fa4_numba.hw import SM_90A, SM_100A, ArchSpec, arch

BOTH = pytest.mark.parametrize("spec", [SM_90A, SM_100A], ids=lambda spec: spec.name)


@BOTH
def test_block_gets_all_shared_memory_but_the_systems_kilobyte(spec):
    assert spec.smem_bytes_per_block == 232448  # 227 KB
    assert spec.smem_bytes_per_sm - spec.smem_bytes_per_block == 1024


@BOTH
def test_registers_of_a_full_block(spec):
    assert spec.registers_per_sm == 65536
    assert spec.registers_per_sm // spec.max_threads_per_block == 64
    assert spec.setmaxnreg_min % spec.setmaxnreg_step == spec.setmaxnreg_max % spec.setmaxnreg_step == 0
    assert spec.max_registers_per_thread == spec.setmaxnreg_max - 1


def test_tensor_memory_is_256_kilobytes_on_blackwell_only():
    assert SM_100A.tmem_lanes * SM_100A.tmem_cols * 4 == 256 * 1024
    assert SM_100A.has_tensor_memory and not SM_90A.has_tensor_memory
    assert SM_100A.tmem_cols % SM_100A.tmem_alloc_min_cols == 0


def test_every_number_is_documented_with_a_source():
    documented = re.findall(r"^    (\w[\w, ]*) : ", ArchSpec.__doc__, re.M)
    names = {name.strip() for group in documented for name in group.split(",")}
    assert names == {field.name for field in dataclasses.fields(ArchSpec)}
    entries = re.split(r"^    \w[\w, ]* : .*\n", ArchSpec.__doc__, flags=re.M)[2:]  # after "name"
    assert all("Source:" in entry for entry in entries)


def test_arch_by_name():
    assert arch("sm_90a") is SM_90A and arch("sm_100a") is SM_100A
    with pytest.raises(dataclasses.FrozenInstanceError):
        SM_100A.tmem_cols = 1024


@pytest.mark.parametrize("name", ["sm_100", "sm_80", "", None, ["sm_100a"]])
def test_unknown_arch_names_the_known_ones(name):
    with pytest.raises(ConfigError, match=r"arch = .*unknown.*sm_100a.*sm_90a"):
        arch(name)
