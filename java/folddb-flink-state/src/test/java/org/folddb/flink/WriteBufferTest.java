package org.folddb.flink;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.folddb.Durability;
import org.folddb.FoldDb;
import org.folddb.Options;
import org.folddb.Table;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Writes that wait are seen by each read, and flushed by few of them. */
class WriteBufferTest {
    @TempDir Path folder;
    private FoldDb db;
    private WriteBuffer writes;

    @BeforeEach
    void open() {
        db = FoldDb.create(
                folder.resolve("store"), new Options().memoryBytes(8 << 20).durability(Durability.BUFFERED));
        writes = new WriteBuffer(db);
    }

    @AfterEach
    void close() {
        db.close();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }

    @Test
    void everyReadSeesWhatWasWrittenBefore() {
        List<Table> tables = List.of(db.createTable("a", "fold=append:,"), db.createTable("b", "fold=append:,"));
        Map<String, String> expected = new HashMap<>();
        Random random = new Random(5);
        int unflushed = 0;
        for (int step = 0; step < 50_000; step++) {
            int at = random.nextInt(2);
            Table table = tables.get(at);
            String key = "key " + random.nextInt(2_000);
            String name = at + key;
            int action = random.nextInt(100);
            if (action < 40) {
                writes.flushFor(table, bytes(key));
                unflushed += writes.size() > 0 ? 1 : 0;
                String value = expected.get(name);
                assertArrayEquals(value == null ? null : bytes(value), table.get(bytes(key)), name);
            } else if (action < 60) {
                writes.put(table, bytes(key), bytes("" + step));
                expected.put(name, "" + step);
            } else if (action < 90) {
                writes.append(table, bytes(key), bytes("" + step));
                expected.merge(name, "" + step, (a, b) -> a + "," + b);
            } else if (action < 99) {
                writes.delete(table, bytes(key));
                expected.remove(name);
            } else {
                writes.deleteRange(table, bytes(key), bytes(key + "~"));
                expected.keySet().removeIf(each -> each.startsWith(name));
            }
        }
        assertTrue(unflushed > 5_000, unflushed + " reads have left writes waiting");
    }

    @Test
    void readsOfOtherKeysFlushAlmostNothing() {
        Table table = db.createTable("a", "fold=append:,");
        Table other = db.createTable("b", "fold=append:,");
        int flushes = 0;
        for (int number = 0; number < 200; number++) {
            writes.put(table, bytes("key " + number), bytes("value"));
            int before = writes.size();
            writes.flushFor(table, bytes("another " + number));
            writes.flushFor(other, bytes("key " + number));
            flushes += writes.size() < before ? 1 : 0;
        }
        assertTrue(flushes < 20, flushes + " of 400 reads have flushed");
        writes.flushFor(table, bytes("key 199"));
        assertEquals(0, writes.size());
        assertArrayEquals(bytes("value"), table.get(bytes("key 199")));
    }
}
