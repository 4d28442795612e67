package org.folddb;

import java.nio.ByteBuffer;

/**
 * The functions of the native half, in {@code crates/jni}. Objects are numbers there, which are
 * looked up: one that is zero, or was released, is an exception.
 */
final class Native {
    static {
        NativeLibrary.load();
    }

    private Native() {}

    static native long open(String path, int mode, String[] settings, long shared);

    static native void close(long store);

    static native void closeWithoutFlush(long store);

    static native void release(long handle);

    static native long shared(long bytes);

    static native long sharedUsed(long shared);

    static native String[] tables(long store);

    static native void dropTable(long store, String name);

    static native long lastSeq(long store);

    static native void sync(long store);

    static native void flush(long store);

    static native String[] stats(long store);

    static native String[] doctor(long store);

    static native long snapshot(long store);

    static native long table(long store, String name, String rules, int mode);

    static native String rules(long table);

    static native void compact(long table);

    static native String[] tableStats(long table);

    static native void write(
            long table,
            int op,
            byte[] key,
            int keyOffset,
            int keyLength,
            byte[] value,
            int valueOffset,
            int valueLength);

    static native void deleteRange(long table, byte[] from, byte[] to);

    static native void deletePrefix(long table, byte[] prefix);

    static native void commit(
            long store, long[] tables, ByteBuffer ops, int length, String durability);

    static native byte[] get(long table, long snapshot, byte[] key, int offset, int length);

    static native byte[] take(long table, byte[] key);

    static native byte[][] getMany(long table, long snapshot, byte[][] keys);

    static native long scan(
            long table,
            long snapshot,
            byte[] low,
            byte[] high,
            byte[] prefix,
            int flags,
            long limit);

    static native int rows(long scan, ByteBuffer buffer);

    static native String backup(long store, String to);

    static native String[] backupFiles(String backup);

    static native void restore(String from, String to, String[] settings);

    static native String[] verify(String path, boolean deep, String[] settings);
}
