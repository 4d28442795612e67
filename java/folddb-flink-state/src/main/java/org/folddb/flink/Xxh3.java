package org.folddb.flink;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.math.BigInteger;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * XXH3 of 64 bits without a seed, as in its published specification: the hash of members of
 * sketches, for which the native half has the same one.
 */
final class Xxh3 {
    private static final VarHandle WORD =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle HALF =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

    private static final byte[] SECRET =
            bytes(
                    ""
                            + "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
                            + "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
                            + "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
                            + "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
                            + "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
                            + "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e");

    private static final long PRIME32_1 = 0x9E3779B1L;
    private static final long PRIME32_2 = 0x85EBCA77L;
    private static final long PRIME32_3 = 0xC2B2AE3DL;
    private static final long PRIME64_1 = 0x9E3779B185EBCA87L;
    private static final long PRIME64_2 = 0xC2B2AE3D27D4EB4FL;
    private static final long PRIME64_3 = 0x165667B19E3779F9L;
    private static final long PRIME64_4 = 0x85EBCA77C2B2AE63L;
    private static final long PRIME64_5 = 0x27D4EB2F165667C5L;
    private static final int STRIPE = 64;
    private static final int BLOCK = 1024;

    private Xxh3() {}

    private static byte[] bytes(String hex) {
        byte[] wide = new BigInteger(hex, 16).toByteArray();
        return Arrays.copyOfRange(wide, wide.length - hex.length() / 2, wide.length);
    }

    private static long word(byte[] in, int at) {
        return (long) WORD.get(in, at);
    }

    private static long half(byte[] in, int at) {
        return (int) HALF.get(in, at) & 0xffffffffL;
    }

    private static long secret(int at) {
        return word(SECRET, at);
    }

    /** Both halves of the product without signs, one over the other. */
    private static long folded(long a, long b) {
        long high = Math.multiplyHigh(a, b) + ((a >> 63) & b) + ((b >> 63) & a);
        return a * b ^ high;
    }

    private static long mixed(byte[] in, int at, int secretAt) {
        return folded(word(in, at) ^ secret(secretAt), word(in, at + 8) ^ secret(secretAt + 8));
    }

    private static long avalanche(long hash) {
        long h = (hash ^ hash >>> 37) * 0x165667919E3779F9L;
        return h ^ h >>> 32;
    }

    private static long avalancheOfFew(long hash) {
        long h = (hash ^ hash >>> 33) * PRIME64_2;
        h = (h ^ h >>> 29) * PRIME64_3;
        return h ^ h >>> 32;
    }

    static long hash(byte[] in) {
        int length = in.length;
        if (length <= 16) {
            return upTo16(in, length);
        }
        if (length <= 128) {
            return upTo128(in, length);
        }
        return length <= 240 ? upTo240(in, length) : more(in, length);
    }

    private static long upTo16(byte[] in, int length) {
        if (length > 8) {
            long low = word(in, 0) ^ secret(24) ^ secret(32);
            long high = word(in, length - 8) ^ secret(40) ^ secret(48);
            return avalanche(length + Long.reverseBytes(low) + high + folded(low, high));
        }
        if (length >= 4) {
            long key = half(in, length - 4) + (half(in, 0) << 32) ^ secret(8) ^ secret(16);
            long h = key ^ Long.rotateLeft(key, 49) ^ Long.rotateLeft(key, 24);
            h *= 0x9FB21C651E98DF25L;
            h = (h ^ (h >>> 35) + length) * 0x9FB21C651E98DF25L;
            return h ^ h >>> 28;
        }
        if (length > 0) {
            long first = in[0] & 0xff;
            long middle = in[length >> 1] & 0xff;
            long last = in[length - 1] & 0xff;
            long all = first << 16 | middle << 24 | last | (long) length << 8;
            return avalancheOfFew(all ^ half(SECRET, 0) ^ half(SECRET, 4));
        }
        return avalancheOfFew(secret(56) ^ secret(64));
    }

    private static long upTo128(byte[] in, int length) {
        long h = length * PRIME64_1;
        for (int at = (length - 1) / 32 * 16; at >= 0; at -= 16) {
            h += mixed(in, at, 2 * at) + mixed(in, length - at - 16, 2 * at + 16);
        }
        return avalanche(h);
    }

    private static long upTo240(byte[] in, int length) {
        long h = length * PRIME64_1;
        for (int at = 0; at < 128; at += 16) {
            h += mixed(in, at, at);
        }
        h = avalanche(h);
        for (int at = 128; at + 16 <= length; at += 16) {
            h += mixed(in, at, at - 128 + 3);
        }
        return avalanche(h + mixed(in, length - 16, 119));
    }

    private static long more(byte[] in, int length) {
        long[] sums = {
            PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1
        };
        int stripes = (length - 1) / STRIPE;
        for (int stripe = 0; stripe < stripes; stripe++) {
            int inBlock = stripe % (BLOCK / STRIPE);
            add(sums, in, stripe * STRIPE, 8 * inBlock);
            if (inBlock == BLOCK / STRIPE - 1) {
                scramble(sums);
            }
        }
        add(sums, in, length - STRIPE, 121);
        long h = length * PRIME64_1;
        for (int at = 0; at < 4; at++) {
            h += folded(sums[2 * at] ^ secret(11 + 16 * at), sums[2 * at + 1] ^ secret(19 + 16 * at));
        }
        return avalanche(h);
    }

    private static void add(long[] sums, byte[] in, int at, int secretAt) {
        for (int lane = 0; lane < 8; lane++) {
            long data = word(in, at + 8 * lane);
            long key = data ^ secret(secretAt + 8 * lane);
            sums[lane ^ 1] += data;
            sums[lane] += (key & 0xffffffffL) * (key >>> 32);
        }
    }

    private static void scramble(long[] sums) {
        for (int lane = 0; lane < 8; lane++) {
            sums[lane] = (sums[lane] ^ sums[lane] >>> 47 ^ secret(128 + 8 * lane)) * PRIME32_1;
        }
    }
}
