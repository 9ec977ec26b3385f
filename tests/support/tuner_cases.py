"""Designs, candidates and spaces that tests of the tuner share."""

from bdforge.devices import device_named
from bdforge.operators.gemm import load_spec
from bdforge.perf.tune.candidate_search import Ranked
from bdforge.perf.tune.space import Candidate, search_space
from support.built_designs import ROOT, small_gemm

SPEC = load_spec(ROOT / "designs" / "gemm_i8_i2_bitnet.toml")
SPACE = search_space(device_named("strix_halo"), "i8,i2,i32", 64)
BYTES = small_gemm(types=("int8", "int8", "int32"), rows=1, columns=1, k_mt=32).spec
ALL_INT8 = search_space(device_named("strix_halo"), "i8,i8,i8,i8", 512)
PLAIN = Candidate(64, 64, 64, 128, 1, 2, 1, 1, 0)


def ranked(time_us: float = 5.0, **changes: int) -> Ranked:
    return Ranked(time_us, PLAIN._replace(**changes))
