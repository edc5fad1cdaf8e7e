// A machine for recorded learners: runs a program of operations on float32 numbers in its memory.
// Every operand is a place, counted in floats, with strides; torch_phases/program.py writes programs.
typedef float f4 __attribute__((vector_size(16), aligned(4)));
typedef int i4 __attribute__((vector_size(16)));
extern float math(int function, float x, float y);  // torch_phases/machine/machine.js

#define SPLAT(x) ((f4){(x), (x), (x), (x)})
#define LOAD(p) (*(const f4 *)(p))
#define STORE(p, v) (*(f4 *)(p) = (v))
#define SELECT(mask, a, b) ((f4)(((i4)(a) & (mask)) | ((i4)(b) & ~(mask))))
#define MASK(condition) SELECT(condition, SPLAT(1), SPLAT(0))
#define SQRT(x) __builtin_wasm_sqrt_f32x4(x)

enum { LONGEST = 2048, ROW = 1024 };  // sum of a product; numbers done at once
static float *const memory = 0;
static float panel[8 * LONGEST] __attribute__((aligned(16)));  // 8 columns of a product's right side
static float rows[3][ROW] __attribute__((aligned(16)));

// ------------------------------------------------------------------------------- number by number
#define ELEMENTWISE(OP) \
  OP(0, x) OP(1, x + y) OP(2, x - y) OP(3, x * y) OP(4, x / y) OP(5, SQRT(x)) OP(6, 1 / SQRT(x)) \
  OP(7, -x) OP(8, SELECT(x < 0, -x, x)) OP(9, SELECT((y > x) | (y != y), y, x)) \
  OP(10, SELECT((y < x) | (y != y), y, x)) OP(11, MASK(x < y)) OP(12, MASK(x <= y)) \
  OP(13, MASK(x > y)) OP(14, MASK(x >= y)) OP(15, MASK(x == y)) OP(16, MASK(x != y)) \
  OP(17, SELECT(x != 0, z, y)) OP(18, x + y * z)
#define OTHER(k) ((f4){math(k, x[0], y[0]), math(k, x[1], y[1]), math(k, x[2], y[2]), math(k, x[3], y[3])})

static void put(float *o, f4 v, int left) {  // what is left of a row
  if (left >= 4) STORE(o, v);
  else for (int j = 0; j < left; j++) o[j] = v[j];
}

static void row(int op, int n, int many, float *const *at, const int *strides) {  // at most ROW numbers
  float *o = at[0];
  const float *in[3] = {rows[0], rows[1], rows[2]};
  int step[3] = {0, 0, 0};
  for (int k = 0; k < many; k++) {
    const float *from = at[k + 1];
    int stride = strides[k + 1];
    if (stride == 1) in[k] = from, step[k] = 1;
    else if (!stride) STORE(rows[k], SPLAT(*from));
    else { for (int i = 0; i < n; i++) rows[k][i] = from[i * stride]; step[k] = 1; }
  }
#define OPERANDS f4 x = LOAD(in[0] + i * step[0]), y = LOAD(in[1] + i * step[1]), z = LOAD(in[2] + i * step[2]);
  int i = 0, whole = n & -4;
  switch (op) {
#define RUN(k, e) case k: \
      for (; i < whole; i += 4) { OPERANDS STORE(o + i, e); } \
      if (i < n) { OPERANDS put(o + i, e, n - i); } \
      break;
    ELEMENTWISE(RUN)
    default: for (; i < n; i += 4) { OPERANDS put(o + i, OTHER(op), n - i); }
  }
}

static void along(int op, int many, int axes, const int *axis, float *const *at) {  // sizes and strides of axes
  for (int k = 0, n = axes > 1 ? 1 : ROW, size = axis[0]; k < size; k += n) {
    float *inner[4];
    for (int j = 0; j <= many; j++) inner[j] = at[j] + k * axis[1 + j];
    if (axes > 1) along(op, many, axes - 1, axis + 2 + many, inner);
    else row(op, size - k < n ? size - k : n, many, inner, axis + 1);
  }
}

static const int *elementwise(const int *p) {  // op, n, axes, out, n x in; axes x (size, stride of out, n x of in)
  int many = p[1], axes = p[2];
  float *at[4];
  for (int j = 0; j <= many; j++) at[j] = memory + p[3 + j];
  along(p[0], many, axes, p + 4 + many, at);
  return p + 4 + many + axes * (2 + many);
}

// --------------------------------------------------------------------------- product of matrices
static void pack(const float *b, int bk, int bn, int K, int columns) {
  int k = 0;
  if (columns == 8) for (; k < K; k++) for (int j = 0; j < 8; j += 4) {
    const float *s = b + k * bk + j * bn;
    STORE(panel + 8 * k + j, bn == 1 ? LOAD(s) : ((f4){s[0], s[bn], s[2 * bn], s[3 * bn]}));
  }
  for (; k < K; k++)
    for (int j = 0; j < 8; j++) panel[8 * k + j] = j < columns ? b[k * bk + j * bn] : 0;
}

#define BLOCK(R) { /* R rows and 8 columns of the product */ \
  f4 c[R][2]; \
  for (int r = 0; r < R; r++) c[r][0] = c[r][1] = SPLAT(0); \
  const float *x = a + i * am, *w = panel; \
  for (int k = 0; k < K; k++, x += ak, w += 8) { \
    f4 u = LOAD(w), v = LOAD(w + 4); \
    _Pragma("unroll") for (int r = 0; r < R; r++) { \
      f4 s = SPLAT(x[r * am]); \
      c[r][0] += s * u; c[r][1] += s * v; } } \
  for (int r = 0; r < R; r++) { float *o = out + (i + r) * N + j; \
    if (columns == 8) STORE(o, c[r][0]), STORE(o + 4, c[r][1]); \
    else for (int q = 0; q < columns; q++) o[q] = c[r][q / 4][q % 4]; } \
  i += R; }

static const int *product(const int *p) {  // out, M, N, K, a and its strides, b and its strides
  float *out = memory + p[0];
  int M = p[1], N = p[2], K = p[3], am = p[5], ak = p[6], bk = p[8], bn = p[9];
  const float *a = memory + p[4], *b = memory + p[7];
  for (int j = 0; j < N; j += 8) {
    int columns = N - j < 8 ? N - j : 8, i = 0;
    pack(b + j * bn, bk, bn, K, columns);
    while (i + 4 <= M) BLOCK(4)
    while (i < M) BLOCK(1)
  }
  return p + 10;
}

// -------------------------------------------------------------------------------------- sums
static const int *sum(const int *p) {  // out, kept, summed, in, its strides
  float *out = memory + p[0];
  int kept = p[1], summed = p[2], ks = p[4], ss = p[5], j = 0;
  const float *in = memory + p[3];
  if (ks == 1) for (; j + 4 <= kept; j += 4) {
    f4 s = SPLAT(0);
    for (int i = 0; i < summed; i++) s += LOAD(in + j + i * ss);
    STORE(out + j, s);
  }
  for (; j < kept; j++) {
    const float *x = in + j * ks;
    f4 s = SPLAT(0);
    int i = 0;
    if (ss == 1) for (; i + 4 <= summed; i += 4) s += LOAD(x + i);
    for (; i < summed; i++) s[0] += x[i * ss];
    out[j] = (s[0] + s[1]) + (s[2] + s[3]);
  }
  return p + 6;
}

void run(const int *p, const int *end) {
  while (p < end) switch (*p++) {
    case 0: p = elementwise(p); break;
    case 1: p = product(p); break;
    case 2: p = sum(p); break;
    default: __builtin_trap();
  }
}
