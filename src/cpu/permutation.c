/* permutation.c: random permutations: 1..n, sorted by random keys of 64 bits, which every device
 * can do in parallel. A million keys have an equal pair in one of 10^7 runs.
 *
 * The keys are spread evenly over all numbers of 64 bits. So their highest bits divide them into
 * buckets of similar sizes that fit the cache, and the next bits divide a bucket into slots of one
 * or two items. Within a bucket an item is one number: the 32 bits of the key below those of the
 * bucket (fewer for more than 2^32 items), above the index. Where these bits do not decide, the
 * keys are computed again. */
#include "permutation.h"

#include "kernel_support.h"
#include "rows.h"

enum { PART = 512, MOST_BUCKET_BITS = 12, MOST_SLOT_BITS = 12, LOG_BUCKET = 9 };
enum { GAP = 8 }; /* between the numbers of two pieces, which must not share a cache line */

typedef struct Permutation {
  lt_Philox p;
  int64_t n;
  int bucket_bits, index_bits;
  int64_t *out;    /* first the keys, at the end the result */
  uint64_t *items; /* by bucket */
  int64_t *starts; /* for each piece and bucket: the number of items, then the next one's place */
  int64_t stride;  /* of the pieces in starts */
  int64_t *ends;   /* for each bucket */
} Permutation;

/* Returns the number of bits of x. */
static int bits_of(uint64_t x) {
  int bits = 0;
  for (; x; x >>= 1) bits++;
  return bits;
}

static int64_t bucket_of(const Permutation *s, uint64_t key) {
  return (int64_t)(key >> 1 >> (63 - s->bucket_bits));
}

/* Computes the keys of the parts first .. last - 1, and counts them by bucket. */
static void count_keys(const Permutation *s, int64_t first, int64_t last, int64_t *counts) {
  uint32_t w[2 * PART];
  for (int64_t part = first; part < last && !lt_stopped(); part++) {
    int64_t from = part * PART, count = s->n - from < PART ? s->n - from : PART;
    lt_rows()->philox(s->p.seed, s->p.position + (uint64_t)from / 2, (count + 1) / 2, w);
    for (int64_t i = 0; i < count; i++) {
      uint64_t key = (uint64_t)w[2 * i + 1] << 32 | w[2 * i];
      s->out[from + i] = (int64_t)key;
      counts[bucket_of(s, key)]++;
    }
  }
}

/* Moves the items of the parts first .. last - 1 to their buckets, in order. */
static void fill_buckets(const Permutation *s, int64_t first, int64_t last, int64_t *next) {
  int64_t end = last * PART < s->n ? last * PART : s->n;
  for (int64_t i = first * PART; i < end; i++) {
    if (lt_stopped_at(i)) return;
    uint64_t key = (uint64_t)s->out[i];
    s->items[next[bucket_of(s, key)]++] =
        (key << s->bucket_bits) >> s->index_bits << s->index_bits | (uint64_t)i;
  }
}

/* Sorts neighbouring items whose bits of the key are the same by the whole keys. */
static void sort_by_keys(const Permutation *s, uint64_t *x, int64_t n) {
  uint64_t mask = ((uint64_t)1 << s->index_bits) - 1;
  for (int64_t i = 1; i < n; i++) {
    uint64_t e = x[i];
    int64_t j = i;
    for (; j > 0 && (x[j - 1] ^ e) <= mask; j--) {
      if (lt_philox_wide(s->p, (int64_t)(x[j - 1] & mask)) <=
          lt_philox_wide(s->p, (int64_t)(e & mask)))
        break;
      x[j] = x[j - 1];
    }
    x[j] = e;
  }
}

/* Moves the larger of two neighbours up, without branches: sorts slots of two items. */
static void exchange_neighbours(uint64_t *x, int64_t n) {
  uint64_t larger = n > 0 ? x[0] : 0;
  for (int64_t i = 1; i < n; i++) {
    uint64_t e = x[i];
    x[i - 1] = larger < e ? larger : e;
    larger = larger < e ? e : larger;
  }
  if (n > 0) x[n - 1] = larger;
}

/* Sorts the n items of a bucket into x, and replaces them by their indices. */
static void sort_bucket(const Permutation *s, const uint64_t *items, int64_t n, uint64_t *x) {
  uint32_t starts[1 << MOST_SLOT_BITS], sum = 0;
  int bits = bits_of((uint64_t)n);
  if (bits > MOST_SLOT_BITS) bits = MOST_SLOT_BITS;
  memset(starts, 0, sizeof *starts << bits);
  for (int64_t i = 0; i < n; i++) starts[items[i] >> 1 >> (63 - bits)]++;
  for (int64_t k = 0; k < (int64_t)1 << bits; k++) {
    uint32_t count = starts[k];
    starts[k] = sum;
    sum += count;
  }
  for (int64_t i = 0; i < n; i++) x[starts[items[i] >> 1 >> (63 - bits)]++] = items[i];
  exchange_neighbours(x, n);
  uint64_t mask = ((uint64_t)1 << s->index_bits) - 1;
  bool same = false; /* whether the bits of two keys are the same */
  for (int64_t i = 1; i < n; i++) {
    uint64_t e = x[i];
    int64_t j = i;
    for (; j > 0 && x[j - 1] > e; j--) x[j] = x[j - 1];
    x[j] = e;
    same |= j > 0 && (x[j - 1] ^ e) <= mask;
  }
  if (same) sort_by_keys(s, x, n);
  for (int64_t i = 0; i < n; i++) x[i] = (x[i] & mask) + LT_INDEX_BASE;
}

static void sort_buckets(const Permutation *s, int64_t first, int64_t last) {
  for (int64_t b = first; b < last && !lt_stopped(); b++) {
    int64_t start = b ? s->ends[b - 1] : 0;
    sort_bucket(s, s->items + start, s->ends[b] - start, (uint64_t *)s->out + start);
  }
}

/* Converts the counts of `pieces` pieces to the places of their first items. */
static void place_buckets(Permutation *s, int pieces, int64_t buckets) {
  int64_t sum = 0;
  for (int64_t b = 0; b < buckets; b++) {
    for (int k = 0; k < pieces; k++) {
      int64_t *start = &s->starts[k * s->stride + b], count = *start;
      *start = sum;
      sum += count;
    }
    s->ends[b] = sum;
  }
}

/* Computes the permutation in `team` pieces. */
static void permute(Permutation *s, int team, int64_t buckets) {
  int64_t parts = (s->n + PART - 1) / PART;
  LT_IN_TEAM(
      team, team,
      count_keys(s, parts * first / team, parts * last / team, s->starts + first * s->stride));
  if (lt_stopped()) return; /* the counts are incomplete */
  place_buckets(s, team, buckets);
  LT_IN_TEAM(
      team, team,
      fill_buckets(s, parts * first / team, parts * last / team, s->starts + first * s->stride));
  if (lt_stopped()) return;
  LT_IN_TEAM(team, buckets, sort_buckets(s, first, last));
}

bool lt_permutation(lt_Philox p, int64_t n, int64_t *out) {
  int index_bits = n >> 32 ? 40 : 32, bucket_bits = bits_of((uint64_t)n) - 1 - LOG_BUCKET;
  if (bucket_bits < 0) bucket_bits = 0;
  if (bucket_bits > MOST_BUCKET_BITS) bucket_bits = MOST_BUCKET_BITS;
  int64_t buckets = (int64_t)1 << bucket_bits, parts = (n + PART - 1) / PART;
  int team = lt_team(8 * n, parts < buckets ? parts : buckets);
  Permutation s = {p,
                   n,
                   bucket_bits,
                   index_bits,
                   out,
                   malloc((size_t)n * sizeof *s.items),
                   calloc((size_t)(team + 1) * (size_t)(buckets + GAP), sizeof *s.starts),
                   buckets + GAP,
                   NULL};
  bool ok = s.items && s.starts;
  if (ok) {
    s.ends = s.starts + team * s.stride;
    permute(&s, team, buckets);
  }
  free(s.items);
  free(s.starts);
  return ok || lt_fail_memory();
}
