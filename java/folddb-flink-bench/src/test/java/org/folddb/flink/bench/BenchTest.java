package org.folddb.flink.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tiny loads over every backend have the same results, and a table is made of them. */
class BenchTest {
    private static final long MEMORY_BYTES = 16 << 20;

    @TempDir Path directory;

    @ParameterizedTest
    @EnumSource
    void resultsAreThoseOfTheHeap(Workload workload) throws Exception {
        Load load = new Load(workload, 200, 5, 3);
        Map<String, Object> expected = run(load, Backend.HEAP);
        assertTrue((long) expected.get("results") > 200, expected.toString());
        List<Map<String, Object>> all = new ArrayList<>(List.of(expected));
        for (Backend backend : Backend.values()) {
            if (backend.runs(workload)) {
                Map<String, Object> figures = run(load, backend);
                assertEquals(expected.get("results"), figures.get("results"), backend.title());
                assertEquals(expected.get("checksum"), figures.get("checksum"), backend.title());
                assertTrue((int) figures.get("checkpoints") > 0, figures.toString());
                assertTrue((long) figures.get("checkpoint_bytes") > 0, figures.toString());
                // As the lines of a file have them.
                all.add(Json.parsed(Json.line(figures)));
            }
        }
        all.set(0, Json.parsed(Json.line(expected)));
        assertTrue(Table.of(all).contains("| records/s |"), Table.of(all));
        all.get(0).put("checksum", "another");
        assertThrows(IllegalStateException.class, () -> Table.of(all));
    }

    private Map<String, Object> run(Load load, Backend backend) throws Exception {
        return new Measurement(load, backend, MEMORY_BYTES, 5, directory.resolve(backend.title())).run();
    }

    @ParameterizedTest
    @EnumSource(names = {"WINDOW_REDUCE", "SESSIONS"})
    void aClusterHasTheSameResults(Workload workload) throws Exception {
        Load load = new Load(workload, 200, 5, 4);
        List<Map<String, Object>> all = new ArrayList<>();
        for (Backend backend : List.of(Backend.HEAP, Backend.FOLDDB, Backend.ROCKSDB)) {
            Path place = directory.resolve(backend.title());
            Map<String, Object> figures =
                    new ClusterRun(load, backend, MEMORY_BYTES, 2, 20, place).run();
            assertEquals(4000L, figures.get("records"));
            assertTrue((long) figures.get("results") > 200, figures.toString());
            all.add(Json.parsed(Json.line(figures)));
        }
        assertTrue(Table.of(all).contains("in a cluster of 2 slots"), "and the results are the same");
        assertThrows(
                IllegalArgumentException.class,
                () ->
                        new ClusterRun(
                                new Load(Workload.MAP_JOIN, 1, 1, 1), Backend.HEAP, 1, 2, 1, directory));
    }

    /** Pairs that are joined and sums that are read are as many as the records say. */
    @ParameterizedTest
    @EnumSource(names = {"VALUE_RMW", "MAP_JOIN"})
    void everyRecordHasItsResult(Workload workload) throws Exception {
        Map<String, Object> figures = run(new Load(workload, 100, 4, 2), Backend.HEAP);
        assertEquals(800L, figures.get("records"));
        assertEquals(workload == Workload.VALUE_RMW ? 800L : 400L, figures.get("results"));
    }

    @Test
    void quantilesAreAtMostAFewPercentTooHigh() {
        Latencies latencies = new Latencies();
        for (long nanos = 1; nanos <= 100_000; nanos++) {
            latencies.add(nanos);
        }
        for (double quantile : new double[] {0.0001, 0.01, 0.5, 0.99, 0.999, 1}) {
            double exact = Math.ceil(quantile * 100_000) / 1000;
            double said = latencies.micros(quantile);
            assertTrue(said >= exact && said <= exact * 1.016 + 0.001, quantile + ": " + said);
        }
        latencies.add(Long.MAX_VALUE);
        assertEquals(Long.MAX_VALUE / 1000.0, latencies.longestMicros());
        assertEquals(Long.MAX_VALUE / 1000.0, latencies.micros(1));
    }

    @Test
    void argumentsAreReadAndWrittenAgain() {
        Arguments arguments =
                new Arguments(List.of("--keys", "10K", "--out", "here"), Contest.KNOWN);
        assertEquals(10_000, arguments.number("keys", 1));
        assertEquals(7, arguments.number("rounds", 7));
        assertEquals(List.of("--keys", "10K"), arguments.words(Set.of("out")));
        assertThrows(
                IllegalArgumentException.class,
                () -> new Arguments(List.of("--kees", "1"), Contest.KNOWN));
    }
}
