// A machine for recorded learners: runs a program of operations on float32 numbers in its memory.
// Every operand is a place, counted in floats, with strides; tapejit/program.py writes programs.
typedef float f4 __attribute__((vector_size(16), aligned(4)));
typedef int i4 __attribute__((vector_size(16)));
extern float math(int function, float x, float y);  // tapejit/machine/machine.js
extern unsigned char __heap_base;

#ifdef RELAXED
#define FMA(a, b, c) __builtin_wasm_relaxed_madd_f32x4(a, b, c)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif
#define SPLAT(x) ((f4){(x), (x), (x), (x)})
#define LOAD(p) (*(const f4 *)(p))
#define STORE(p, v) (*(f4 *)(p) = (v))
#define SELECT(mask, a, b) ((f4)(((i4)(a) & (mask)) | ((i4)(b) & ~(mask))))
#define MASK(condition) SELECT(condition, SPLAT(1), SPLAT(0))
#define SQRT(x) __builtin_wasm_sqrt_f32x4(x)

enum { LONGEST = 2048, WIDEST = 8192 };  // sum of a product; row of numbers that lie apart
static float *const memory = 0;
static float panel[8 * LONGEST] __attribute__((aligned(16)));  // 8 columns of a product's right side
static float rows[4][WIDEST] __attribute__((aligned(16)));

int heap(void) { return (int)&__heap_base; }

// ------------------------------------------------------------------------------- number by number
#define ELEMENTWISE(OP) \
  OP(0, x) OP(1, x + y) OP(2, x - y) OP(3, x * y) OP(4, x / y) OP(5, SQRT(x)) \
  OP(6, FMA(z, y - x, x)) OP(7, FMA(u, y * z, x)) OP(8, FMA(u, y / z, x)) OP(9, FMA(z, y, x)) \
  OP(10, SELECT(x <= 0, SPLAT(0), x)) OP(11, SELECT(x != 0, y, z)) \
  OP(12, SELECT(y <= z, SPLAT(0), x)) OP(13, -x) OP(14, y - x) OP(15, x * (1 - y * y)) \
  OP(16, MASK(x > 0) - MASK(x < 0)) OP(17, SELECT(x < 0, -x, x)) OP(18, SELECT(y < x, y, x)) \
  OP(19, SELECT(y > x, y, x)) OP(20, MASK(x < y)) OP(21, MASK(x <= y)) OP(22, MASK(x > y)) \
  OP(23, MASK(x >= y)) OP(24, MASK(x == y)) OP(25, MASK(x != y)) OP(26, 1 / x) OP(27, 1 / SQRT(x))
#define OTHER(k) ((f4){math(k, x[0], y[0]), math(k, x[1], y[1]), math(k, x[2], y[2]), math(k, x[3], y[3])})

static f4 one(int op, f4 x, f4 y, f4 z, f4 u) {
  switch (op) {
#define CASE(k, e) case k: return e;
    ELEMENTWISE(CASE)
  }
  return OTHER(op);
}

static const int *elementwise(const int *p) {  // op, rows, columns, out, its stride, n, n x (in, strides)
  int op = p[0], m = p[1], n = p[2], many = p[5];
  for (int row = 0; row < m; row++) {
    float *o = memory + p[3] + row * p[4];
    const float *in[4] = {rows[0], rows[1], rows[2], rows[3]};
    int step[4] = {0, 0, 0, 0};
    for (int k = 0; k < many; k++) {
      const int *q = p + 6 + 3 * k;
      const float *from = memory + q[0] + row * q[1];
      if (q[2] == 1) in[k] = from, step[k] = 1;
      else if (!q[2]) STORE(rows[k], SPLAT(*from));
      else { for (int i = 0; i < n; i++) rows[k][i] = from[i * q[2]]; step[k] = 1; }
    }
    int i = 0;
#define OPERANDS f4 x = LOAD(in[0] + i * step[0]), y = LOAD(in[1] + i * step[1]), \
      z = LOAD(in[2] + i * step[2]), u = LOAD(in[3] + i * step[3]);
    switch (op) {
#define RUN(k, e) case k: for (; i + 4 <= n; i += 4) { OPERANDS STORE(o + i, e); } break;
      ELEMENTWISE(RUN)
      default: for (; i + 4 <= n; i += 4) { OPERANDS STORE(o + i, OTHER(op)); }
    }
    if (i < n) {  // what is left of a row
      f4 v[4];
      for (int k = 0; k < 4; k++)
        for (int j = 0; j < 4; j++) v[k][j] = i + j < n || !step[k] ? in[k][(i + j) * step[k]] : 1;
      f4 found = one(op, v[0], v[1], v[2], v[3]);
      for (int j = 0; i + j < n; j++) o[i + j] = found[j];
    }
  }
  return p + 6 + 3 * many;
}

// --------------------------------------------------------------------------- product of matrices
static void pack(const float *b, int bk, int bn, int K, int columns) {
  int k = 0;
  if (columns == 8 && bn == 1) {
    for (; k < K; k++) STORE(panel + 8 * k, LOAD(b + k * bk)), STORE(panel + 8 * k + 4, LOAD(b + k * bk + 4));
  } else if (columns == 8 && bk == 1) {
    for (; k + 4 <= K; k += 4) for (int h = 0; h < 8; h += 4) {
      const float *s = b + h * bn + k;
      f4 r = LOAD(s), t = LOAD(s + bn), u = LOAD(s + 2 * bn), v = LOAD(s + 3 * bn);
      f4 a = __builtin_shufflevector(r, t, 0, 4, 1, 5), c = __builtin_shufflevector(r, t, 2, 6, 3, 7);
      f4 d = __builtin_shufflevector(u, v, 0, 4, 1, 5), e = __builtin_shufflevector(u, v, 2, 6, 3, 7);
      float *o = panel + 8 * k + h;
      STORE(o, __builtin_shufflevector(a, d, 0, 1, 4, 5));
      STORE(o + 8, __builtin_shufflevector(a, d, 2, 3, 6, 7));
      STORE(o + 16, __builtin_shufflevector(c, e, 0, 1, 4, 5));
      STORE(o + 24, __builtin_shufflevector(c, e, 2, 3, 6, 7));
    }
  }
  for (; k < K; k++)
    for (int j = 0; j < 8; j++) panel[8 * k + j] = j < columns ? b[k * bk + j * bn] : 0;
}

#define BLOCK(R) { /* R rows and 8 columns of the product */ \
  f4 c[R][2]; \
  for (int r = 0; r < R; r++) c[r][0] = first[0], c[r][1] = first[1]; \
  const float *x = a + i * am, *w = panel; \
  for (int k = 0; k < K; k++, x += ak, w += 8) { \
    f4 u = LOAD(w), v = LOAD(w + 4); \
    _Pragma("unroll") for (int r = 0; r < R; r++) { \
      f4 s = SPLAT(x[r * am]); \
      c[r][0] = FMA(s, u, c[r][0]); c[r][1] = FMA(s, v, c[r][1]); } } \
  for (int r = 0; r < R; r++) { float *o = out + (i + r) * N + j; \
    if (columns == 8) STORE(o, c[r][0]), STORE(o + 4, c[r][1]); \
    else for (int q = 0; q < columns; q++) o[q] = c[r][q / 4][q % 4]; } \
  i += R; }

static const int *product(const int *p) {  // out, M, N, K, a and its strides, b and its strides, bias or -1
  float *out = memory + p[0];
  int M = p[1], N = p[2], K = p[3], am = p[5], ak = p[6], bk = p[8], bn = p[9];
  const float *a = memory + p[4], *b = memory + p[7], *bias = p[10] < 0 ? 0 : memory + p[10];
  for (int j = 0; j < N; j += 8) {
    int columns = N - j < 8 ? N - j : 8, i = 0;
    f4 first[2] = {SPLAT(0), SPLAT(0)};
    if (bias) for (int q = 0; q < columns; q++) first[q / 4][q % 4] = bias[j + q];
    pack(b + j * bn, bk, bn, K, columns);
    while (i + 4 <= M) BLOCK(4)
    while (i < M) BLOCK(1)
  }
  return p + 11;
}

// ---------------------------------------------------------------------- sums, layer normalization
static float total(f4 x) { return (x[0] + x[1]) + (x[2] + x[3]); }

// kind (0 sum, 1 largest, 2 smallest, 3 and 4 their indices), out, kept, summed, in, strides, factor
static const int *reduce(const int *p) {
  int kind = p[0], kept = p[2], many = p[3], ks = p[5], ss = p[6], j = 0;
  float factor = *(const float *)(p + 7);
  if (!kind && ks == 1) for (; j + 4 <= kept; j += 4) {
    f4 sum = SPLAT(0);
    for (int i = 0; i < many; i++) sum += LOAD(memory + p[4] + j + i * ss);
    STORE(memory + p[1] + j, sum * factor);
  }
  for (; j < kept; j++) {
    const float *x = memory + p[4] + j * ks;
    float sum = kind ? x[0] : 0, at = 0;
    for (int i = 0; i < many; i++) {
      float y = x[i * ss];
      if (!kind) sum += y;
      else if (kind % 2 ? y > sum : y < sum) sum = y, at = i;
    }
    memory[p[1] + j] = kind > 2 ? at : factor * sum;
  }
  return p + 8;
}

static f4 load(const float *p, int left) {  // what is left of a row, and zeros
  return left > 3 ? LOAD(p) : (f4){p[0], left > 1 ? p[1] : 0, left > 2 ? p[2] : 0, 0};
}
static void store(float *p, f4 v, int left) {
  if (left > 3) STORE(p, v);
  else for (int j = 0; j < left; j++) p[j] = v[j];
}
#define ROW for (int i = 0; i < n; i += 4)

static const int *normalize(const int *p) {  // y, mean, scale, x, factor, shift, rows, n, epsilon
  int n = p[7];
  for (int row = 0; row < p[6]; row++) {
    const float *x = memory + p[3] + row * n;
    f4 sum = SPLAT(0), squares = SPLAT(0);
    ROW sum += load(x + i, n - i);
    float mean = total(sum) / n;
    ROW { f4 d = load(x + i, n - i) - mean; squares = FMA(d, d, squares); }
    float extra = (-n & 3) * mean * mean;  // of the zeros behind the row
    float scale = 1 / __builtin_sqrtf((total(squares) - extra) / n + *(const float *)(p + 8));
    ROW {
      f4 normal = (load(x + i, n - i) - mean) * scale, factor = load(memory + p[4] + i, n - i);
      store(memory + p[0] + row * n + i, FMA(normal, factor, load(memory + p[5] + i, n - i)), n - i);
    }
    memory[p[1] + row] = mean;
    memory[p[2] + row] = scale;
  }
  return p + 9;
}

static const int *normalize_back(const int *p) {  // gx, gfactor, gshift (or -1), g, x, mean, scale, factor, rows, n
  int n = p[9];
  for (int k = 1; k < 3; k++) if (p[k] >= 0) for (int i = 0; i < n; i++) memory[p[k] + i] = 0;
  for (int row = 0; row < p[8]; row++) {
    const float *g = memory + p[3] + row * n, *x = memory + p[4] + row * n, *factor = memory + p[7];
    float mean = memory[p[5] + row], scale = memory[p[6] + row];
    f4 a = SPLAT(0), b = SPLAT(0);
    ROW {
      f4 normal = (load(x + i, n - i) - mean) * scale, grad = load(g + i, n - i);
      f4 inner = grad * load(factor + i, n - i);
      a += inner;
      b = FMA(inner, normal, b);
      float *o = memory + p[1] + i, *s = memory + p[2] + i;
      if (p[1] >= 0) store(o, FMA(grad, normal, load(o, n - i)), n - i);
      if (p[2] >= 0) store(s, load(s, n - i) + grad, n - i);
    }
    float ma = total(a) / n, mb = total(b) / n;
    ROW {
      f4 normal = (load(x + i, n - i) - mean) * scale, inner = load(g + i, n - i) * load(factor + i, n - i);
      store(memory + p[0] + row * n + i, scale * (inner - ma - normal * mb), n - i);
    }
  }
  return p + 10;
}

void run(const int *p, const int *end) {
  while (p < end) switch (*p++) {
    case 0: p = elementwise(p); break;
    case 1: p = product(p); break;
    case 2: p = reduce(p); break;
    case 3: p = normalize(p); break;
    case 4: p = normalize_back(p); break;
    default: __builtin_trap();
  }
}
