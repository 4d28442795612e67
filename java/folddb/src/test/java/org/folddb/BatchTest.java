package org.folddb;

import static org.folddb.TableTest.bytes;
import static org.folddb.TableTest.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import org.folddb.FoldDbException.Kind;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BatchTest {
    @TempDir Path folder;
    private FoldDb db;

    @BeforeEach
    void open() {
        db = FoldDb.create(folder.resolve("store"), new Options());
    }

    @AfterEach
    void close() {
        db.close();
    }

    @Test
    void aBatchWritesToSeveralTablesTogether() {
        Table lists = db.table("lists", "fold=append:,");
        Table plain = db.table("plain", "");
        for (int number = 0; number < 3; number++) {
            plain.put(bytes("gone" + number), bytes("x"));
        }
        Batch batch = db.batch();
        batch.fold(lists, bytes("k"), bytes("a")).fold(lists, bytes("k"), bytes("b"));
        batch.put(plain, bytes("p"), bytes("1")).putIfAbsent(plain, bytes("p"), bytes("2"));
        batch.delete(plain, bytes("gone0")).deleteRange(plain, bytes("gone1"), bytes("gone9"));
        byte[] parts = bytes("..key..value");
        batch.fold(lists, parts, 2, 3, parts, 7, 5);
        assertEquals(7, batch.size());
        assertNull(lists.get(bytes("k")), "nothing is written before the commit");
        batch.commit();
        assertEquals(0, batch.size());
        assertEquals("a,b", text(lists.get(bytes("k"))));
        assertEquals("value", text(lists.get(bytes("key"))));
        assertEquals("1", text(plain.get(bytes("p"))));
        assertEquals(1, plain.stats().get("keys_estimate") >= 1 ? 1 : 0);
        for (int number = 0; number < 3; number++) {
            assertNull(plain.get(bytes("gone" + number)));
        }
    }

    @Test
    void aBatchGrowsAndIsUsedAgain() {
        Table plain = db.table("plain", "");
        Batch batch = db.batch();
        for (int round = 0; round < 3; round++) {
            for (int number = 0; number < 2_000; number++) {
                batch.put(plain, bytes(round + "/" + number), new byte[100]);
            }
            batch.commit(round == 1 ? Durability.SYNC : Durability.BUFFERED);
        }
        assertEquals(100, plain.get(bytes("2/1999")).length);
        assertEquals(6_000.0, plain.stats().get("records"));
    }

    @Test
    void aWrongOpWritesNothingOfItsBatch() {
        Table numbers = db.table("numbers", "fold=sum:u64");
        Table plain = db.table("plain", "");
        Batch batch = db.batch().put(plain, bytes("p"), bytes("1"));
        batch.fold(numbers, bytes("n"), bytes("not a number at all"));
        FoldDbException wrong = assertThrows(FoldDbException.class, batch::commit);
        assertEquals(Kind.InvalidInput, wrong.kind(), wrong.getMessage());
        assertNull(plain.get(bytes("p")));
        assertEquals(0, batch.size(), "it is empty after a commit that failed, too");
    }

    @Test
    void aBufferThatIsNoBatchIsRefused() {
        Table plain = db.table("plain", "");
        long[] tables = {plain.handle()};
        ByteBuffer direct = ByteBuffer.allocateDirect(64);
        for (int length : new int[] {1, 15, 16, 63, 64, 65, -1, Integer.MAX_VALUE}) {
            for (int number = 0; number < 64; number += 4) {
                direct.putInt(number, 0x7fff_ff07);
            }
            assertThrows(
                    FoldDbException.class,
                    () -> Native.commit(db.handle(), tables, direct, length, "process"),
                    length + " bytes");
        }
        for (ByteBuffer wrong : new ByteBuffer[] {null, ByteBuffer.allocate(64)}) {
            assertThrows(
                    FoldDbException.class,
                    () -> Native.commit(db.handle(), tables, wrong, 16, "process"));
        }
        assertThrows(
                FoldDbException.class, () -> Native.commit(db.handle(), tables, direct, 0, "never"));
        assertEquals(0.0, plain.stats().get("records"));
    }
}
