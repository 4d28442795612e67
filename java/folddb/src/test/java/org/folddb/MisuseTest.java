package org.folddb;

import static org.folddb.TableTest.bytes;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.folddb.FoldDbException.Kind;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Wrong calls, closed objects, damaged stores, and threads: exceptions, never a crash. */
class MisuseTest {
    @TempDir Path folder;

    private FoldDb create() {
        return FoldDb.create(folder.resolve("store"), new Options());
    }

    private static FoldDbException fails(Kind kind, Executable call) {
        FoldDbException failure = assertThrows(FoldDbException.class, call);
        assertEquals(kind, failure.kind(), failure.getMessage());
        return failure;
    }

    @Test
    void anErrorHasItsKindTextAndAdvice() {
        try (FoldDb db = create()) {
            db.createTable("visits", "");
            FoldDbException none = fails(Kind.TableNotFound, () -> db.table("visit"));
            assertTrue(none.getMessage().contains("visits"), none.getMessage());
            assertFalse(none.advice().isEmpty());
            fails(Kind.AlreadyExists, () -> db.createTable("visits", ""));
            fails(Kind.RulesMismatch, () -> db.table("visits", "fold=append:,"));
            fails(Kind.InvalidInput, () -> db.table("other", "fold=sun:u64"));
            fails(Kind.Locked, () -> FoldDb.open(folder.resolve("store"), new Options()));
            assertEquals(List.of("visits"), db.tables());
            db.dropTable("visits");
            assertEquals(List.of(), db.tables());
        }
        fails(Kind.StoreNotFound, () -> FoldDb.open(folder.resolve("nowhere"), new Options()));
        fails(
                Kind.InvalidInput,
                () -> FoldDb.open(folder.resolve("store"), new Options().set("memory", "1")));
        fails(
                Kind.InvalidInput,
                () -> FoldDb.open(folder.resolve("store"), new Options().set("memory_bytes", "much")));
    }

    @Test
    void closedObjectsGiveClosed() {
        FoldDb db = create();
        Table table = db.table("plain", "");
        table.put(bytes("k"), bytes("v"));
        Snapshot snapshot = db.snapshot();
        Rows rows = table.scan().rows();
        snapshot.close();
        snapshot.close();
        fails(Kind.Closed, () -> table.get(snapshot, bytes("k")));
        fails(Kind.Closed, () -> table.scan().at(snapshot).rows());
        Table again = db.table("plain");
        again.close();
        fails(Kind.Closed, () -> again.get(bytes("k")));
        fails(Kind.Closed, () -> db.batch().put(again, bytes("k"), bytes("v")).commit());
        db.close();
        db.close();
        fails(Kind.Closed, () -> table.get(bytes("k")));
        fails(Kind.Closed, () -> table.put(bytes("k"), bytes("v")));
        fails(Kind.Closed, db::flush);
        fails(Kind.Closed, db::tables);
        fails(Kind.Closed, () -> db.batch().put(table, bytes("k"), bytes("v")).commit());
        rows.close();
        rows.close();
        assertFalse(rows.next());
    }

    @Test
    void anyNumberIsSafeAsAHandle() {
        try (FoldDb db = create()) {
            Table table = db.table("plain", "");
            for (long number : new long[] {0, 1, -1, Long.MIN_VALUE, Long.MAX_VALUE, table.handle() ^ (1L << 40)}) {
                fails(Kind.Closed, () -> Native.get(number, 0, bytes("k"), 0, 1));
                fails(Kind.Closed, () -> Native.flush(number));
                Native.release(number);
            }
            fails(Kind.InvalidInput, () -> Native.flush(table.handle()));
            fails(Kind.InvalidInput, () -> Native.rules(db.handle()));
        }
    }

    @Test
    void nullsAndWrongPartsOfArraysAreExceptions() {
        try (FoldDb db = create()) {
            Table table = db.table("plain", "");
            byte[] four = new byte[4];
            assertThrows(NullPointerException.class, () -> table.put(null, four));
            assertThrows(NullPointerException.class, () -> table.get(null));
            assertThrows(IndexOutOfBoundsException.class, () -> table.get(four, 3, 2));
            assertThrows(IndexOutOfBoundsException.class, () -> table.fold(four, 0, 4, four, -1, 1));
            fails(Kind.InvalidInput, () -> table.getMany((byte[]) null));
            fails(Kind.InvalidInput, () -> table.deleteRange(null, four));
            fails(Kind.InvalidInput, () -> db.table(null, ""));
            fails(Kind.InvalidInput, () -> table.put(new byte[70_000], four));
            int[][] wrong = {{0, 5}, {4, 1}, {-1, 2}, {0, -1}, {1, Integer.MAX_VALUE}, {0, 300}};
            for (int[] part : wrong) {
                assertThrows(
                        RuntimeException.class,
                        () -> Native.get(table.handle(), 0, four, part[0], part[1]),
                        part[0] + " " + part[1]);
            }
            fails(Kind.InvalidInput, () -> table.scan().limit(-1));
        }
    }

    @Test
    void aDamagedStoreIsReportedAndCrashesNothing() throws IOException {
        Path store = folder.resolve("store");
        try (FoldDb db = create()) {
            Table table = db.table("plain", "");
            for (int number = 0; number < 5_000; number++) {
                table.put(bytes("key" + number), new byte[50]);
            }
            db.flush();
        }
        assertEquals(List.of(), FoldDb.verify(store, true, new Options()));
        Path largest = largest(store);
        byte[] content = Files.readAllBytes(largest);
        for (int at = content.length / 4; at < content.length * 3 / 4; at += 97) {
            content[at] ^= 0x55;
        }
        Files.write(largest, content);
        assertFalse(FoldDb.verify(store, true, new Options()).isEmpty());
        FoldDbException damaged =
                assertThrows(
                        FoldDbException.class,
                        () -> {
                            try (FoldDb db = FoldDb.open(store, new Options());
                                    Rows rows = db.table("plain").scan().rows()) {
                                while (rows.next()) {
                                    assertNotNull(rows.value());
                                }
                            }
                        });
        assertEquals(Kind.Corruption, damaged.kind(), damaged.getMessage());
    }

    private static Path largest(Path store) throws IOException {
        try (Stream<Path> files = Files.walk(store)) {
            return files.filter(Files::isRegularFile)
                    .filter(file -> !file.getFileName().toString().endsWith(".log"))
                    .max((a, b) -> Long.compare(a.toFile().length(), b.toFile().length()))
                    .orElseThrow();
        }
    }

    @Test
    void aBackupIsRestored() {
        Path backups = folder.resolve("backups");
        try (FoldDb db = create()) {
            db.table("plain", "").put(bytes("k"), bytes("v"));
            db.backup(backups);
            db.table("plain").put(bytes("k"), bytes("later"));
        }
        Path copy = folder.resolve("copy");
        FoldDb.restore(backups, copy, new Options());
        try (FoldDb db = FoldDb.openReadOnly(copy, new Options())) {
            assertEquals("v", TableTest.text(db.table("plain").get(bytes("k"))));
            fails(Kind.ReadOnly, () -> db.table("plain").put(bytes("k"), bytes("v")));
        }
    }

    @Test
    void storesShareOneBudget() {
        try (SharedMemory shared = new SharedMemory(16 << 20)) {
            Options options = new Options().shared(shared);
            try (FoldDb one = FoldDb.create(folder.resolve("one"), options);
                    FoldDb other = FoldDb.create(folder.resolve("other"), options)) {
                one.table("plain", "").put(bytes("k"), new byte[100_000]);
                other.table("plain", "").put(bytes("k"), new byte[100_000]);
                assertTrue(shared.usedBytes() > 200_000, "" + shared.usedBytes());
            }
        }
        fails(Kind.InvalidInput, () -> new SharedMemory(-1));
    }

    @Test
    void threadsWriteToOneStoreAtOnce() throws InterruptedException {
        try (FoldDb db = create()) {
            Table table = db.table("lists", "fold=append:,");
            AtomicReference<Throwable> failure = new AtomicReference<>();
            List<Thread> threads = new ArrayList<>();
            for (int number = 0; number < 4; number++) {
                Thread thread = new Thread(() -> add(db, table, failure));
                threads.add(thread);
                thread.start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
            assertEquals(null, failure.get());
            assertEquals(4 * 2_000 * 2 - 1, table.get(bytes("k")).length);
        }
    }

    private static void add(FoldDb db, Table table, AtomicReference<Throwable> failure) {
        try {
            Batch batch = db.batch();
            for (int number = 0; number < 1_000; number++) {
                table.fold(bytes("k"), bytes("x"));
                batch.fold(table, bytes("k"), bytes("y")).commit();
            }
        } catch (Throwable thrown) {
            failure.set(thrown);
        }
    }

    @Test
    void aStoreIsClosedWhileThreadsUseIt() throws InterruptedException {
        for (int round = 0; round < 10; round++) {
            FoldDb db = FoldDb.create(folder.resolve("store" + round), new Options());
            Table table = db.table("plain", "");
            AtomicInteger calls = new AtomicInteger();
            AtomicReference<Throwable> failure = new AtomicReference<>();
            List<Thread> threads = new ArrayList<>();
            for (int number = 0; number < 3; number++) {
                Thread thread = new Thread(() -> useUntilClosed(db, table, calls, failure));
                threads.add(thread);
                thread.start();
            }
            while (calls.get() < 200) {
                Thread.onSpinWait();
            }
            db.close();
            for (Thread thread : threads) {
                thread.join();
            }
            FoldDbException ended = (FoldDbException) failure.get();
            assertEquals(Kind.Closed, ended.kind(), ended.getMessage());
        }
    }

    private static void useUntilClosed(
            FoldDb db, Table table, AtomicInteger calls, AtomicReference<Throwable> failure) {
        try {
            while (true) {
                int number = calls.incrementAndGet();
                table.put(bytes("k" + number % 100), bytes("v"));
                table.get(bytes("k" + number % 50));
                db.batch().delete(table, bytes("k" + number % 10)).commit();
                try (Snapshot at = db.snapshot();
                        Rows rows = table.scan().at(at).limit(5).rows()) {
                    while (rows.next()) {
                        assertNotNull(rows.key());
                    }
                }
            }
        } catch (Throwable thrown) {
            failure.set(thrown);
        }
    }
}
