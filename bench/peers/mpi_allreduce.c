/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduces of MPI, timed as `weft bench all-reduce` times its own: mpirun -n RANKS mpi_allreduce BYTES ... */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRounds = 12, kWarm = 3 };

static int Compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int k = 1; k < argc; ++k) {
    const long bytes = atol(argv[k]);
    const int elements = bytes / 4 > 0 ? (int)(bytes / 4) : 1;
    float* const in = calloc((size_t)elements, 4);
    float* const out = calloc((size_t)elements, 4);
    const long least = bytes > (1 << 14) ? bytes : 1 << 14;
    long calls = (1L << 22) / least;
    calls = calls < 1 ? 1 : calls > 64 ? 64 : calls;
    double times[kRounds];
    for (int round = 0; round < kRounds + kWarm; ++round) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      for (long i = 0; i < calls; ++i)
        MPI_Allreduce(in, out, elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      if (round >= kWarm) times[round - kWarm] = (MPI_Wtime() - begin) * 1e6 / (double)calls;
    }
    qsort(times, kRounds, sizeof(double), Compare);
    if (rank == 0) printf("%ld %f %f\n", bytes, times[kRounds / 2], times[0]);
    fflush(stdout);
    free(in);
    free(out);
  }
  MPI_Finalize();
  return 0;
}
