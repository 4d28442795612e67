package org.folddb.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.state.AbstractKeyedStateBackend;
import org.folddb.FoldDb;
import org.folddb.Options;
import org.folddb.Table;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the log says of a store while a job runs. */
class StoreReportsTest {
    @TempDir Path folder;

    private static String next(BlockingQueue<String> log) throws InterruptedException {
        String text = log.poll(60, TimeUnit.SECONDS);
        assertTrue(text != null, "no report came");
        return text;
    }

    private static long threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("folddb-reports"))
                .count();
    }

    private static void waitForThreads(long count) throws InterruptedException {
        for (int round = 0; threads() != count && round < 600; round++) {
            Thread.sleep(100);
        }
        assertEquals(count, threads(), "threads that report");
    }

    @Test
    void reportsHaveTheFiguresOfTheirMomentAndEndWithTheStore() throws Exception {
        BlockingQueue<String> log = new LinkedBlockingQueue<>();
        try (FoldDb db = FoldDb.create(folder.resolve("store"), new Options())) {
            Table table = db.table("t", "fold=sum:i64");
            StoreReports reports = StoreReports.start(db, Duration.ofMillis(5), log::add);
            for (int writes = 1; writes <= 2; writes++) {
                table.fold(new byte[] {1}, new byte[8]);
                String expected = "writes.records=" + writes + ".0";
                String text = next(log);
                while (!text.contains(expected)) {
                    text = next(log);
                }
                assertTrue(text.startsWith("The FoldDB store " + db.path() + " has {"), text);
                assertTrue(text.endsWith("\nNothing is wrong with it."), text);
                assertFalse(text.contains("=0.0,"), text);
            }
            reports.close();
            waitForThreads(0);
            log.clear();
            Thread.sleep(50);
            assertEquals(List.of(), List.copyOf(log));
        }
    }

    @Test
    void aClosedStoreEndsNoThreadWithAnError() throws Exception {
        BlockingQueue<String> log = new LinkedBlockingQueue<>();
        FoldDb db = FoldDb.create(folder.resolve("store"), new Options());
        StoreReports reports = StoreReports.start(db, Duration.ofMillis(5), log::add);
        next(log);
        db.close();
        Thread.sleep(50);
        waitForThreads(1); // it lives on until the reports are closed
        reports.close();
        waitForThreads(0);
    }

    /** A store that wants more free space than there is refuses writes, of which the doctor speaks. */
    @Test
    void adviceOfTheDoctorIsInTheReport() {
        FoldDb.create(folder.resolve("store"), new Options()).close();
        Options options = new Options().set("disk_reserve_bytes", "" + (1L << 60));
        try (FoldDb db = FoldDb.open(folder.resolve("store"), options)) {
            List<String> advice = db.doctor();
            assertFalse(advice.isEmpty(), "a store on a full disk");
            assertTrue(advice.get(0).contains("\n  do: "), advice.get(0));
            String text = StoreReports.textOf(db);
            // Others write to the same disk: its free space may be another one by now.
            String expected = withoutNumbers("\n" + String.join("\n", advice));
            assertTrue(withoutNumbers(text).endsWith(expected), text);
        }
    }

    private static String withoutNumbers(String text) {
        return text.replaceAll("[0-9]+", "N");
    }

    private AbstractKeyedStateBackend<Integer> backend(String interval) throws Exception {
        Configuration configuration = new Configuration();
        configuration.setString("state.backend.folddb.report-interval", interval);
        return Backends.open(
                new FoldDbStateBackend().configure(configuration, getClass().getClassLoader()));
    }

    @Test
    void aBackendReportsAsLongAsItLivesIfItIsAskedTo() throws Exception {
        AbstractKeyedStateBackend<Integer> silent = Backends.open(new FoldDbStateBackend());
        assertEquals(0, threads(), "off by default");
        AbstractKeyedStateBackend<Integer> reporting = backend("10 ms");
        waitForThreads(1);
        reporting.dispose();
        waitForThreads(0);
        silent.dispose();
        assertNull(StoreReports.start(null, Duration.ZERO));
        assertThrows(IllegalArgumentException.class, () -> backend("PT-1S"));
    }
}
