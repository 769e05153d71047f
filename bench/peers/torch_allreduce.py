# SPDX-License-Identifier: Apache-2.0
"""All-reduces of torch.distributed's Gloo among processes of this host: torch_allreduce.py RANKS BYTES ...

One rank of several network namespaces, entered before: torch_allreduce.py RANKS/RANK/HOST:PORT/INTERFACE BYTES ...
Prints for each size "BYTES MEDIAN_US LEAST_US": as many calls a round, and rounds, as `weft bench all-reduce` has.
"""
import os
import socket
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

ROUNDS, WARM = 12, 3


def rank_main(rank, ranks, port, sizes, host='127.0.0.1', interface='lo'):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR=host, MASTER_PORT=str(port), GLOO_SOCKET_IFNAME=interface)
    dist.init_process_group('gloo', rank=rank, world_size=ranks)
    for size in sizes:
        tensor = torch.zeros(max(1, size // 4))
        calls = max(1, min(64, (1 << 22) // max(size, 1 << 14)))
        times = []
        for round_number in range(ROUNDS + WARM):
            dist.barrier()
            begin = time.perf_counter()
            for _ in range(calls):
                dist.all_reduce(tensor)
            if round_number >= WARM:
                times.append((time.perf_counter() - begin) * 1e6 / calls)
        if rank == 0:
            print(size, statistics.median(times), min(times), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == '__main__' and '/' in sys.argv[1]:
    ranks, rank, place, interface = sys.argv[1].split('/')
    host, port = place.split(':')
    rank_main(int(rank), int(ranks), port, [int(size) for size in sys.argv[2:]], host, interface)
elif __name__ == '__main__':
    with socket.create_server(('127.0.0.1', 0)) as probe:
        free = probe.getsockname()[1]
    processes.spawn(rank_main, (int(sys.argv[1]), free, [int(size) for size in sys.argv[2:]]), nprocs=int(sys.argv[1]))
