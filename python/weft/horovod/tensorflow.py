# SPDX-License-Identifier: Apache-2.0
"""The names of horovod.tensorflow."""
from weft.horovod import elastic  # noqa: F401
from weft.horovod.collectives import (  # noqa: F401
    Adasum, Average, Compression, Max, Min, Product, Sum, allgather, allgather_object, allreduce, alltoall, barrier, broadcast,
    broadcast_object, grouped_allreduce)
from weft.horovod.job import (  # noqa: F401
    cross_rank, cross_size, is_homogeneous, is_initialized, local_rank, local_size, rank, shutdown, size)
from weft.horovod.members import init  # noqa: F401
from weft.horovod.training import (  # noqa: F401
    BroadcastGlobalVariablesHook, DistributedGradientTape, DistributedOptimizer, broadcast_global_variables, broadcast_variables)


def _not_built():
    return False


mpi_threads_supported = mpi_enabled = mpi_built = gloo_enabled = gloo_built = nccl_built = _not_built
ddl_built = ccl_built = cuda_built = rocm_built = _not_built

__all__ = [name for name in dir() if not name.startswith('_')]
