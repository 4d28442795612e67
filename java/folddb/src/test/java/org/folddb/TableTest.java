package org.folddb;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TableTest {
    @TempDir Path folder;
    private FoldDb db;
    private Table table;

    @BeforeEach
    void open() {
        db = FoldDb.create(folder.resolve("store"), new Options().memoryBytes(8 << 20));
        table = db.table("lists", "fold=append:,");
    }

    @AfterEach
    void close() {
        db.close();
    }

    static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, UTF_8);
    }

    @Test
    void theValueOfAKeyIsTheFoldOfItsWrites() {
        table.fold(bytes("k"), bytes("a"));
        table.fold(bytes("k"), bytes("b"));
        assertEquals("a,b", text(table.get(bytes("k"))));
        table.put(bytes("k"), bytes("c"));
        table.putIfAbsent(bytes("k"), bytes("d"));
        table.fold(bytes("k"), bytes("e"));
        assertEquals("c,e", text(table.get(bytes("k"))));
        table.delete(bytes("k"));
        assertNull(table.get(bytes("k")));
        table.putIfAbsent(bytes("k"), bytes("d"));
        assertEquals("d", text(table.get(bytes("k"))));
        assertEquals("d", text(table.take(bytes("k"))));
        assertNull(table.take(bytes("k")));
        assertNull(table.get(bytes("k")));
    }

    @Test
    void closingWithoutAFlushLeavesTheRowsToTheLog() throws IOException {
        table.put(bytes("a"), bytes("1"));
        db.flush();
        List<String> before = parts();
        for (int round = 0; round < 100; round++) {
            db.batch().fold(table, bytes("k" + round % 10), bytes("" + round)).commit();
        }
        table.delete(bytes("a"));
        db.closeWithoutFlush();
        db.closeWithoutFlush();
        db.close();
        assertEquals(before, parts());
        FoldDbException over = assertThrows(FoldDbException.class, () -> table.get(bytes("a")));
        assertEquals(FoldDbException.Kind.Closed, over.kind());

        db = FoldDb.open(folder.resolve("store"), new Options());
        table = db.table("lists");
        assertNull(table.get(bytes("a")));
        assertEquals("7,17,27,37,47,57,67,77,87,97", text(table.get(bytes("k7"))));
        db.close(); // which flushes, so that the comparison above can fail
        assertNotEquals(before, parts());
    }

    private List<String> parts() throws IOException {
        try (Stream<Path> files = Files.list(folder.resolve("store"))) {
            return files.map(file -> file.getFileName().toString())
                    .filter(name -> name.endsWith(".part"))
                    .sorted()
                    .collect(Collectors.toList());
        }
    }

    @Test
    void aNumberIsItsBytesLittleEndian() {
        Table sums = db.table("sums", "fold=sum:u64");
        sums.fold(bytes("k"), new byte[] {1, 2, 0, 0, 0, 0, 0, 0});
        sums.fold(bytes("k"), new byte[] {3, 0, 0, 0, 0, 0, 0, 0});
        assertArrayEquals(new byte[] {4, 2, 0, 0, 0, 0, 0, 0}, sums.get(bytes("k")));
    }

    @Test
    void rulesWithAnIndexOpenTheirTableAgain() {
        for (int again = 0; again < 2; again++) {
            db.table("people", "value=json\nindex=city:json:/city");
        }
    }

    @Test
    void twoScansOfOneThreadHaveTheirOwnRows() {
        fill();
        try (Rows up = table.scan().rows();
                Rows down = table.scan().reverse().rows()) {
            assertTrue(up.next() && down.next());
            assertEquals("a c", text(up.key()) + " " + text(down.key()));
            assertTrue(up.next() && down.next());
            assertEquals("b1 b3", text(up.key()) + " " + text(down.key()));
        }
        assertEquals(5, walk(table.scan()).size());
    }

    @Test
    void everyByteAndEveryLengthComesBack() {
        Table any = db.table("any", "");
        for (int length : new int[] {0, 1, 255, 256, 257, 70_000, 3 << 20}) {
            byte[] value = new byte[length];
            for (int at = 0; at < length; at++) {
                value[at] = (byte) at;
            }
            byte[] key = Arrays.copyOf(value, Math.min(length, 60_000));
            any.put(key, value);
            assertArrayEquals(value, any.get(key), length + " bytes");
        }
    }

    @Test
    void partsOfArraysAreKeysAndValues() {
        byte[] array = bytes("..key..value..");
        table.fold(array, 2, 3, array, 7, 5);
        assertEquals("value", text(table.get(bytes("key"))));
        assertEquals("value", text(table.get(array, 2, 3)));
    }

    @Test
    void manyKeysAreReadInOneCall() {
        table.put(bytes("a"), bytes("1"));
        table.put(bytes("c"), bytes("3"));
        byte[][] found = table.getMany(bytes("c"), bytes("b"), bytes("a"));
        assertEquals("3", text(found[0]));
        assertNull(found[1]);
        assertEquals("1", text(found[2]));
        assertEquals(0, table.getMany().length);
    }

    private List<String> walk(Scan scan) {
        List<String> found = new ArrayList<>();
        try (Rows rows = scan.rows()) {
            while (rows.next()) {
                found.add(text(rows.key()) + "=" + text(rows.value()));
            }
        }
        return found;
    }

    private void fill() {
        for (String key : new String[] {"a", "b1", "b2", "b3", "c"}) {
            table.put(bytes(key), bytes("v" + key));
        }
    }

    @Test
    void aScanHasBoundsDirectionPrefixAndLimit() {
        fill();
        assertEquals(List.of("a=va", "b1=vb1", "b2=vb2", "b3=vb3", "c=vc"), walk(table.scan()));
        assertEquals(List.of("b2=vb2", "b3=vb3"), walk(table.scan().after(bytes("b1")).before(bytes("c"))));
        assertEquals(
                List.of("b2=vb2", "b1=vb1"),
                walk(table.scan().from(bytes("b1")).through(bytes("b2")).reverse()));
        assertEquals(List.of("b1=vb1", "b2=vb2"), walk(table.scan().prefix(bytes("b")).limit(2)));
        assertEquals(List.of("c=", "b3="), walk(table.scan().reverse().keysOnly().limit(2)));
        assertEquals(List.of(), walk(table.scan().prefix(bytes("d"))));
    }

    @Test
    void rowsThatDoNotFitIntoTheBufferComeAllTheSame() {
        fill();
        table.put(bytes("b2"), new byte[5_000]);
        List<Integer> lengths = new ArrayList<>();
        try (Rows rows = table.scan().bufferBytes(64).rows()) {
            while (rows.next()) {
                lengths.add(rows.value().length);
            }
        }
        assertEquals(List.of(2, 3, 5_000, 3, 2), lengths);
    }

    @Test
    void rangesAndPrefixesAreDeleted() {
        fill();
        table.deleteRange(bytes("b2"), bytes("c"));
        assertEquals(List.of("a=va", "b1=vb1", "c=vc"), walk(table.scan()));
        table.deletePrefix(bytes("b"));
        assertEquals(List.of("a=va", "c=vc"), walk(table.scan()));
    }

    @Test
    void aSnapshotSeesTheStoreAsItWas() {
        fill();
        try (Snapshot before = db.snapshot()) {
            table.delete(bytes("a"));
            table.put(bytes("c"), bytes("later"));
            assertEquals("va", text(table.get(before, bytes("a"))));
            assertEquals("vc", text(table.getMany(before, bytes("c"))[0]));
            assertEquals(5, walk(table.scan().at(before)).size());
            assertNull(table.get(bytes("a")));
        }
    }

    @Test
    void flushesMergesAndFiguresAreThere() {
        fill();
        db.flush();
        table.compact();
        assertEquals("vb2", text(table.get(bytes("b2"))));
        assertEquals(5.0, table.stats().get("records"));
        assertTrue(db.stats().get("disk.bytes") > 0, db.stats().toString());
        assertEquals(5, db.lastSeq());
        db.sync();
        assertTrue(table.rules().contains("fold=append:,\n"), table.rules());
        assertTrue(db.table("lists", table.rules()).get(bytes("a")).length > 0);
    }
}
