package org.folddb;

/** A range of a table, and how it is walked. {@link #rows} walks it, any number of times. */
public final class Scan {
    private static final int AFTER = 1;
    private static final int THROUGH = 2;
    private static final int REVERSE = 4;
    private static final int KEYS_ONLY = 8;

    private final Table table;
    private Snapshot at;
    private byte[] low;
    private byte[] high;
    private byte[] prefix;
    private int flags;
    private long limit = Long.MAX_VALUE;
    private int bufferBytes = 64 << 10;

    Scan(Table table) {
        this.table = table;
    }

    /**
     * Only keys from this one on, in the order of the table.
     *
     * @param key the first key
     * @return this scan
     */
    public Scan from(byte[] key) {
        low = key.clone();
        flags &= ~AFTER;
        return this;
    }

    /**
     * Only keys after this one. It replaces {@link #from}.
     *
     * @param key the key before the first
     * @return this scan
     */
    public Scan after(byte[] key) {
        low = key.clone();
        flags |= AFTER;
        return this;
    }

    /**
     * Only keys before this one.
     *
     * @param key the key after the last
     * @return this scan
     */
    public Scan before(byte[] key) {
        high = key.clone();
        flags &= ~THROUGH;
        return this;
    }

    /**
     * Only keys up to this one, included. It replaces {@link #before}.
     *
     * @param key the last key
     * @return this scan
     */
    public Scan through(byte[] key) {
        high = key.clone();
        flags |= THROUGH;
        return this;
    }

    /**
     * Only keys that begin with these bytes. A bound that is set as well replaces that side.
     *
     * @param bytes how they begin
     * @return this scan
     */
    public Scan prefix(byte[] bytes) {
        prefix = bytes.clone();
        return this;
    }

    /**
     * From the highest key down, or up again.
     *
     * @return this scan
     */
    public Scan reverse() {
        flags ^= REVERSE;
        return this;
    }

    /**
     * Only keys: values are empty.
     *
     * @return this scan
     */
    public Scan keysOnly() {
        flags |= KEYS_ONLY;
        return this;
    }

    /**
     * At most this many rows, the first ones in its direction.
     *
     * @param rows how many
     * @return this scan
     */
    public Scan limit(long rows) {
        if (rows < 0) {
            throw new FoldDbException("InvalidInput", rows + " is not a number of rows", "");
        }
        limit = rows;
        return this;
    }

    /**
     * The table as a snapshot sees it.
     *
     * @param snapshot the snapshot
     * @return this scan
     */
    public Scan at(Snapshot snapshot) {
        at = snapshot;
        return this;
    }

    /**
     * How much of the range one crossing into the native half may bring; 64 KiB by default. A row
     * that is longer comes all the same.
     *
     * @param bytes the size of the buffer
     * @return this scan
     */
    public Scan bufferBytes(int bytes) {
        bufferBytes = Math.max(bytes, 64);
        return this;
    }

    /**
     * Walks the range as it is now, or as the snapshot sees it.
     *
     * @return the rows; close them, unless the last one was seen
     */
    public Rows rows() {
        long snapshot = at == null ? 0 : Table.number(at);
        long number = Native.scan(table.handle(), snapshot, low, high, prefix, flags, limit);
        return new Rows(number, bufferBytes);
    }
}
