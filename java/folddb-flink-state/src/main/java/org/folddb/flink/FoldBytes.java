package org.folddb.flink;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/** The bytes of folds: words that are little-endian, and varints. One object writes, or reads. */
final class FoldBytes {
    private static final VarHandle WORD =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private byte[] bytes;
    private int at;

    /** Writes. */
    FoldBytes(int capacity) {
        bytes = new byte[capacity];
    }

    /** Reads. */
    FoldBytes(byte[] bytes) {
        this.bytes = bytes;
    }

    static byte[] ofWord(long word) {
        byte[] bytes = new byte[8];
        WORD.set(bytes, 0, word);
        return bytes;
    }

    static byte[] ofDouble(double number) {
        return ofWord(Double.doubleToRawLongBits(number));
    }

    static long word(byte[] bytes) {
        if (bytes.length != 8) {
            throw new IllegalArgumentException("a value of 8 bytes has " + bytes.length);
        }
        return (long) WORD.get(bytes, 0);
    }

    static double number(byte[] bytes) {
        return Double.longBitsToDouble(word(bytes));
    }

    /** The sum of two counts without a sign, at most the greatest. */
    static long saturatingSum(long a, long b) {
        long sum = a + b;
        return Long.compareUnsigned(sum, a) < 0 ? -1 : sum;
    }

    /** A count without a sign, as a double. */
    static double toDouble(long count) {
        return count >= 0 ? count : ((count >>> 1) | (count & 1)) * 2.0;
    }

    // Writing

    private void reserve(int more) {
        if (bytes.length - at < more) {
            bytes = Arrays.copyOf(bytes, Math.max(2 * bytes.length, at + more));
        }
    }

    void putByte(int value) {
        reserve(1);
        bytes[at++] = (byte) value;
    }

    void putWord(long word) {
        reserve(8);
        WORD.set(bytes, at, word);
        at += 8;
    }

    void putVarint(long value) {
        long rest = value;
        while ((rest & ~0x7fL) != 0) {
            putByte((int) rest | 0x80);
            rest >>>= 7;
        }
        putByte((int) rest);
    }

    void putBytes(byte[] from, int offset, int length) {
        reserve(length);
        System.arraycopy(from, offset, bytes, at, length);
        at += length;
    }

    void putBytes(byte[] from) {
        putBytes(from, 0, from.length);
    }

    /** Changes a byte that was written. */
    void setByte(int place, int value) {
        bytes[place] = (byte) value;
    }

    byte[] written() {
        return Arrays.copyOf(bytes, at);
    }

    // Reading

    boolean isAtEnd() {
        return at == bytes.length;
    }

    private int take(int length) {
        if (length < 0 || length > bytes.length - at) {
            throw new IllegalArgumentException("a value of a fold ends too early");
        }
        int begin = at;
        at += length;
        return begin;
    }

    int nextByte() {
        return bytes[take(1)] & 0xff;
    }

    long nextWord() {
        return (long) WORD.get(bytes, take(8));
    }

    double nextDouble() {
        return Double.longBitsToDouble(nextWord());
    }

    long nextVarint() {
        long value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            int next = nextByte();
            value |= (next & 0x7fL) << shift;
            if (next < 0x80) {
                return value;
            }
        }
        throw new IllegalArgumentException("a value of a fold has a number of too many bytes");
    }

    byte[] nextBytes(int length) {
        int begin = take(length);
        return Arrays.copyOfRange(bytes, begin, begin + length);
    }
}
