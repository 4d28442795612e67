package org.folddb.flink;

/** Folds whose values are one word: whole numbers and doubles, little-endian. */
enum WordFold implements PlainFold {
    /** Adds whole numbers; it wraps. */
    SUM_I64("sum:i64") {
        @Override
        long fold(long a, long b) {
            return a + b;
        }
    },
    /** Adds counts; it stays at the greatest. */
    SUM_U64("sum:u64") {
        @Override
        long fold(long a, long b) {
            return FoldBytes.saturatingSum(a, b);
        }
    },
    MIN_I64("min:i64") {
        @Override
        long fold(long a, long b) {
            return Math.min(a, b);
        }
    },
    MAX_I64("max:i64") {
        @Override
        long fold(long a, long b) {
            return Math.max(a, b);
        }
    },
    MIN_F64("min:f64") {
        @Override
        long fold(long a, long b) {
            return Double.doubleToRawLongBits(
                    least(Double.longBitsToDouble(a), Double.longBitsToDouble(b)));
        }
    },
    MAX_F64("max:f64") {
        @Override
        long fold(long a, long b) {
            return Double.doubleToRawLongBits(
                    greatest(Double.longBitsToDouble(a), Double.longBitsToDouble(b)));
        }
    };

    private final String spec;

    WordFold(String spec) {
        this.spec = spec;
    }

    abstract long fold(long a, long b);

    @Override
    public String spec() {
        return spec;
    }

    @Override
    public byte[] fold(byte[] earlier, byte[] later) {
        return FoldBytes.ofWord(fold(FoldBytes.word(earlier), FoldBytes.word(later)));
    }

    @Override
    public boolean hasEmptyValue() {
        return false;
    }

    /** The smaller number, -0 before +0; NaN only where both are. */
    static double least(double a, double b) {
        return Double.isNaN(a) || (!Double.isNaN(b) && Double.compare(a, b) > 0) ? only(b) : a;
    }

    /** The larger number, -0 before +0; NaN only where both are. */
    static double greatest(double a, double b) {
        return Double.isNaN(a) || (!Double.isNaN(b) && Double.compare(a, b) < 0) ? only(b) : a;
    }

    /** All that is not a number is one NaN. */
    private static double only(double number) {
        return Double.isNaN(number) ? Double.NaN : number;
    }
}
