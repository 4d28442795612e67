package org.folddb.flink;

import java.util.Arrays;
import org.folddb.Rows;
import org.folddb.Table;

/**
 * The rows of one window and key group while the window fires: each is read and then cleared. After
 * a few of them, all are read by one scan. What is cleared waits; when nothing is left of what was
 * read, one range delete does it all.
 *
 * <pre>
 *   get, clear, get, clear, …       of rows of one window and key group, and no write in between
 *   then a scan                     further rows come from it, and clears wait
 *   the last of its rows cleared    one range delete, from the first to the last of them
 *   anything else                   a write into its range, another window, a scan, a snapshot:
 *                                   what waits is deleted row by row first
 * </pre>
 *
 * Rows of the range which the scan has not seen are not there: nothing was written into it since.
 */
final class FiringWindow {
    /** So many rows are read and cleared before the others are read at once. */
    private static final int STREAK = 8;

    private static final int STREAK_MAX = 1 << 16;

    /** What one scan reads at most: it is memory beside the budget. */
    private static final int BYTES_MAX = 2 << 20;

    private static final byte[] NONE = {};

    private final WriteBuffer writes;

    /** The length of a key group and a namespace. */
    private final int prefixLength;

    private byte[] prefix = NONE;
    private int streak;

    /** How many come before a scan, more where earlier ones have read what nobody asked for. */
    private int needed = STREAK;

    private Table table;
    private LoadedRows rows;

    /** The range that was read, up to and without its end. */
    private byte[] begin;

    private byte[] end;

    FiringWindow(WriteBuffer writes, int prefixLength) {
        this.writes = writes;
        this.prefixLength = prefixLength;
    }

    private static boolean begins(byte[] key, byte[] with) {
        return key.length >= with.length && Arrays.equals(key, 0, with.length, with, 0, with.length);
    }

    /** Whether the row, if there is one, is among those that were read. */
    boolean covers(byte[] key) {
        return rows != null
                && Arrays.compareUnsigned(key, begin) >= 0
                && Arrays.compareUnsigned(key, end) < 0;
    }

    /** The value of a row that it covers; null where there is none. */
    byte[] valueOf(byte[] key) {
        int row = rows.find(key);
        return row < 0 ? null : rows.value(row);
    }

    /** A row is about to be read or cleared. All others may be read first. */
    void prepare(Table from, byte[] key) {
        if (prefix == NONE || !begins(key, prefix)) {
            settle();
            prefix = Arrays.copyOf(key, prefixLength);
            streak = 0;
        } else if (rows == null && streak >= needed) {
            load(from);
        }
    }

    private void load(Table from) {
        writes.commit();
        LoadedRows loaded = new LoadedRows();
        byte[] last = StateTable.endOf(prefix);
        boolean isMore;
        try (Rows found = from.scan().from(prefix).before(last).rows()) {
            isMore = loaded.fill(found, BYTES_MAX);
        }
        streak = 0;
        if (loaded.count() == 0) {
            return;
        }
        byte[] after = loaded.key(loaded.count() - 1);
        table = from;
        rows = loaded;
        begin = prefix;
        end = isMore ? Arrays.copyOf(after, after.length + 1) : last;
        writes.waitFor(this);
    }

    /** Clears a row that it covers. */
    void clear(byte[] key) {
        int row = rows.find(key);
        if (row >= 0) {
            rows.remove(row);
            if (rows.live() == 0) {
                settle();
            }
        }
    }

    /** A row that it does not cover is cleared. */
    void noteClear() {
        streak++;
    }

    /** A row is written. */
    void noteWrite(byte[] key) {
        streak = 0;
        if (covers(key)) {
            settle();
        }
    }

    /** Deletes what waits. */
    void settle() {
        if (rows == null) {
            return;
        }
        LoadedRows read = rows;
        rows = null; // what follows must not come here again
        writes.waitNoMore(this);
        if (read.live() == 0 && read.count() >= STREAK) {
            writes.deleteRange(table, begin, end);
        } else {
            read.removed().stream().forEach(row -> writes.delete(table, read.key(row)));
        }
        needed = read.live() > read.count() / 2 ? Math.min(4 * needed, STREAK_MAX) : STREAK;
    }
}
