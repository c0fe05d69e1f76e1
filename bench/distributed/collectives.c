/* collectives.c: measures MPI's collectives by plain calls in C, as the OSU micro-benchmarks do.
 * bench/distributed.lua compares lt.distributed with them.
 *
 *   mpirun -np 2 collectives KIND BYTES...
 *
 * KIND: all_reduce, broadcast, all_gather or reduce_scatter of float32; BYTES: the size of the
 * whole tensor, a multiple of four times the number of ranks where it is divided. For each size
 * rank 0 prints `KIND <tab> BYTES <tab> SECONDS`: the time of one call on the slowest rank, the
 * least mean of several batches of calls after a warm-up. All ranks begin each call together, after
 * a barrier. bench/distributed/collectives.lua does the same with Lutra. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Bench {
  int rank, size;
  float *whole, *part;
} Bench;

typedef void (*Collective)(const Bench *b, int count);

static void all_reduce(const Bench *b, int count) {
  MPI_Allreduce(MPI_IN_PLACE, b->whole, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void broadcast(const Bench *b, int count) {
  MPI_Bcast(b->whole, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void all_gather(const Bench *b, int count) {
  int each = count / b->size;
  MPI_Allgather(b->part, each, MPI_FLOAT, b->whole, each, MPI_FLOAT, MPI_COMM_WORLD);
}

static void reduce_scatter(const Bench *b, int count) {
  MPI_Reduce_scatter_block(b->whole, b->part, count / b->size, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static const struct {
  const char *name;
  Collective run;
} kinds[] = {{"all_reduce", all_reduce},
             {"broadcast", broadcast},
             {"all_gather", all_gather},
             {"reduce_scatter", reduce_scatter}};

enum { BATCHES = 10 };

/* Returns the number of calls in a batch for a size; collectives.lua has the same rule. */
static int calls_for(long bytes) {
  long calls = (16L << 20) / bytes;
  return calls < 1 ? 1 : calls > 100 ? 100 : (int)calls;
}

/* Returns the seconds of one call on the slowest rank. */
static double measure(const Bench *b, Collective run, long bytes) {
  int calls = calls_for(bytes), count = (int)(bytes / 4);
  double seconds[BATCHES], slowest[BATCHES], least;
  for (int i = 0; i < calls / 10 + 2; i++) run(b, count);
  for (int k = 0; k < BATCHES; k++) {
    seconds[k] = 0;
    for (int i = 0; i < calls; i++) {
      double start;
      MPI_Barrier(MPI_COMM_WORLD);
      start = MPI_Wtime();
      run(b, count);
      seconds[k] += (MPI_Wtime() - start) / calls;
    }
  }
  MPI_Allreduce(seconds, slowest, BATCHES, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  least = slowest[0];
  for (int k = 1; k < BATCHES; k++)
    if (slowest[k] < least) least = slowest[k];
  return least;
}

int main(int argc, char **argv) {
  Bench b = {0};
  Collective run = NULL;
  long largest = 4;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &b.size);
  for (size_t i = 0; argc > 1 && i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(argv[1], kinds[i].name) == 0) run = kinds[i].run;
  for (int i = 2; i < argc; i++)
    if (atol(argv[i]) > largest) largest = atol(argv[i]);
  b.whole = malloc((size_t)largest);
  b.part = malloc((size_t)largest);
  if (!run || !b.whole || !b.part) {
    fprintf(stderr, "usage: collectives KIND BYTES...\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
    return 1;
  }
  /* Pages that were never written to are all the same one, and read faster. */
  memset(b.whole, 1, (size_t)largest);
  memset(b.part, 1, (size_t)largest);
  for (int i = 2; i < argc; i++) {
    double seconds = measure(&b, run, atol(argv[i]));
    if (b.rank == 0) printf("%s\t%s\t%.9g\n", argv[1], argv[i], seconds);
  }
  fflush(stdout);
  free(b.whole);
  free(b.part);
  MPI_Finalize();
  return 0;
}
