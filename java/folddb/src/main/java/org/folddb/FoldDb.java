package org.folddb;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * An open store: a directory of tables. The value of a key is the fold of everything written to it.
 *
 * <pre>{@code
 * try (FoldDb db = FoldDb.openOrCreate(Path.of("visits.db"), new Options())) {
 *     Table visits = db.table("visits", "fold=sum:u64\nvalue=u64");
 *     visits.fold(key, one);          // blind: nothing is read
 *     byte[] sum = visits.get(key);
 * }
 * }</pre>
 *
 * <p>Any number of threads use a store at once. All methods throw {@link FoldDbException}; one that
 * is closed gives {@link FoldDbException.Kind#Closed}, also where another thread closes it meanwhile.
 */
public final class FoldDb implements AutoCloseable {
    private final Handle handle;
    private final Path path;
    private final Durability durability;

    private FoldDb(Path path, int mode, Options options) {
        this.path = path;
        this.durability = options.durability;
        this.handle =
                new Handle(
                        this,
                        Native.open(path.toString(), mode, options.settings(), options.sharedHandle()));
    }

    /**
     * Opens a store that exists.
     *
     * @param path its directory
     * @param options the settings
     * @return the store
     */
    public static FoldDb open(Path path, Options options) {
        return new FoldDb(path, 0, options);
    }

    /**
     * Creates a store in a directory that does not exist yet, or is empty.
     *
     * @param path its directory
     * @param options the settings
     * @return the store
     */
    public static FoldDb create(Path path, Options options) {
        return new FoldDb(path, 1, options);
    }

    /**
     * Opens the store of a directory, and creates it where there is none.
     *
     * @param path its directory
     * @param options the settings
     * @return the store
     */
    public static FoldDb openOrCreate(Path path, Options options) {
        return new FoldDb(path, 2, options);
    }

    /**
     * Opens a store to read it while no process writes: nothing on disk changes.
     *
     * @param path its directory
     * @param options the settings
     * @return the store
     */
    public static FoldDb openReadOnly(Path path, Options options) {
        return new FoldDb(path, 3, options);
    }

    /**
     * Opens a store to read it while another process may write to it; it shows what was there.
     *
     * @param path its directory
     * @param options the settings
     * @return the store
     */
    public static FoldDb openSecondary(Path path, Options options) {
        return new FoldDb(path, 4, options);
    }

    /**
     * Its directory.
     *
     * @return the path that it was opened with
     */
    public Path path() {
        return path;
    }

    /**
     * Opens a table that exists.
     *
     * @param name its name
     * @return the table
     */
    public Table table(String name) {
        return new Table(name, Native.table(handle.get(), name, null, 0));
    }

    /**
     * Opens a table, and creates it where the store has none of this name.
     *
     * @param name its name
     * @param rules a line for each rule that is not the default, such as {@code fold=sum:u64}
     * @return the table
     */
    public Table table(String name, String rules) {
        return new Table(name, Native.table(handle.get(), name, rules, 2));
    }

    /**
     * Creates a table.
     *
     * @param name its name
     * @param rules as those of {@link #table(String, String)}
     * @return the table
     */
    public Table createTable(String name, String rules) {
        return new Table(name, Native.table(handle.get(), name, rules, 1));
    }

    /**
     * The names of the tables.
     *
     * @return the names, in order
     */
    public List<String> tables() {
        return List.of(Native.tables(handle.get()));
    }

    /**
     * Removes a table and everything in it.
     *
     * @param name its name
     */
    public void dropTable(String name) {
        Native.dropTable(handle.get(), name);
    }

    /**
     * An empty batch: writes to any tables, which are committed together.
     *
     * @return the batch
     */
    public Batch batch() {
        return new Batch(this);
    }

    /**
     * Takes a snapshot, which is free. Close it when it is no longer needed.
     *
     * @return the snapshot
     */
    public Snapshot snapshot() {
        return new Snapshot(Native.snapshot(handle.get()));
    }

    /** Makes all that was committed so far survive a power cut. */
    public void sync() {
        Native.sync(handle.get());
    }

    /** Writes all memtables out as runs. A store does this on its own, too. */
    public void flush() {
        Native.flush(handle.get());
    }

    /**
     * The number of the last record that was committed.
     *
     * @return the number; 0 where there is none
     */
    public long lastSeq() {
        return Native.lastSeq(handle.get());
    }

    /**
     * The figures of the store, by their names in Rust, such as {@code disk.bytes}.
     *
     * @return the figures
     */
    public Map<String, Double> stats() {
        return figures(Native.stats(handle.get()));
    }

    static Map<String, Double> figures(String[] lines) {
        Map<String, Double> figures = new LinkedHashMap<>();
        for (String line : lines) {
            int at = line.indexOf('=');
            String value = line.substring(at + 1);
            figures.put(line.substring(0, at), value.equals("inf") ? Double.POSITIVE_INFINITY : Double.parseDouble(value));
        }
        return figures;
    }

    /**
     * What is wrong with the store, most severe first, with what it costs and what to do. It reads
     * no files.
     *
     * @return the advice, each of three lines; empty where there is none
     */
    public List<String> doctor() {
        return List.of(Native.doctor(handle.get()));
    }

    /**
     * Adds a backup of the store, as it is now, to a folder for backups. Writes and reads continue.
     *
     * @param to the folder, which is created where nothing is there
     * @return the directory of this backup
     */
    public Path backup(Path to) {
        return Path.of(Native.backup(handle.get(), to.toString()));
    }

    /**
     * The files of a backup. A directory with copies of these, and nothing else, is a backup too:
     * {@link #restore} makes a store of it, and {@link #openReadOnly} reads it.
     *
     * @param backup the directory of one backup
     * @return its files
     */
    public static List<BackupFile> backupFiles(Path backup) {
        List<BackupFile> files = new ArrayList<>();
        for (String line : Native.backupFiles(backup.toString())) {
            files.add(BackupFile.parse(line));
        }
        return files;
    }

    /**
     * Creates a store from the newest backup.
     *
     * @param from the folder for backups, or that of one backup
     * @param to the directory of the new store
     * @param options the settings
     */
    public static void restore(Path from, Path to, Options options) {
        Native.restore(from.toString(), to.toString(), options.settings());
    }

    /**
     * Checks the files of a store that no process writes to.
     *
     * @param path the directory of the store
     * @param deep whether every record is read
     * @param options the settings
     * @return what is wrong, and notes; empty where there is nothing to say
     */
    public static List<String> verify(Path path, boolean deep, Options options) {
        return new ArrayList<>(List.of(Native.verify(path.toString(), deep, options.settings())));
    }

    Durability durability() {
        return durability;
    }

    long handle() {
        return handle.get();
    }

    /** Flushes and closes the store; a second time does nothing. */
    @Override
    public void close() {
        long number = handle.take();
        if (number != 0) {
            Native.close(number);
        }
    }

    /**
     * Closes the store without writing its memtables, which the next opening replays from the log;
     * nothing that was committed is lost. For a store whose directory is removed next. A second time
     * does nothing, as after {@link #close}.
     */
    public void closeWithoutFlush() {
        long number = handle.take();
        if (number != 0) {
            Native.closeWithoutFlush(number);
        }
    }
}
