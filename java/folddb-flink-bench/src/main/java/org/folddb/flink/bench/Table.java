package org.folddb.flink.bench;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.ToDoubleFunction;
import java.util.stream.DoubleStream;

/** Markdown of the medians: a table for each load, with FoldDB next to the best RocksDB. */
final class Table {
    private enum Better {
        MORE,
        LESS,
        NEITHER
    }

    /** A line of the table; the ratio is above 1 where FoldDB is better. */
    private record Row(
            String title, Better better, boolean hasRange, ToDoubleFunction<Map<String, Object>> of) {
        static Row less(String title, String name, double unit) {
            return new Row(title, Better.LESS, false, run -> number(run, name) / unit);
        }
    }

    private static final List<Row> ROWS =
            List.of(
                    new Row("records/s", Better.MORE, true, run -> number(run, "records_per_s")),
                    new Row("CPU, µs a record", Better.LESS, true, run -> number(run, "cpu_us_per_record")),
                    Row.less("`processElement` p50, µs", "call_p50_us", 1),
                    Row.less("… p99, µs", "call_p99_us", 1),
                    Row.less("… p99.9, µs", "call_p999_us", 1),
                    Row.less("… longest, ms", "call_max_us", 1e3),
                    Row.less("watermarks, s in all", "watermark_s", 1),
                    Row.less("peak resident, MB", "rss_peak_bytes", 1e6),
                    Row.less("… beside the heap of Java, MB", "rss_beside_heap_bytes", 1e6),
                    new Row("written to storage, bytes a record", Better.LESS, false, Table::writtenByRecord),
                    Row.less("disk, most at a checkpoint, MB", "disk_peak_bytes", 1e6),
                    Row.less("disk at the end, MB", "disk_end_bytes", 1e6),
                    new Row("checkpoints taken", Better.NEITHER, false, run -> number(run, "checkpoints")),
                    new Row(
                            "… in the operator's thread, median ms",
                            Better.LESS,
                            false,
                            run -> median(numbers(run, "checkpoint_sync_ms"))),
                    new Row(
                            "… longest there, ms",
                            Better.LESS,
                            false,
                            run -> largest(numbers(run, "checkpoint_sync_ms"))),
                    new Row(
                            "… until complete, median ms",
                            Better.LESS,
                            false,
                            run -> median(numbers(run, "checkpoint_total_ms"))),
                    Row.less("… new bytes of all, MB", "checkpoint_bytes", 1e6),
                    new Row(
                            "processes that waited at the start",
                            Better.NEITHER,
                            false,
                            run -> number(run, "load_average")));

    private Table() {}

    private static double number(Map<String, Object> run, String name) {
        return run.get(name) == null ? Double.NaN : ((Number) run.get(name)).doubleValue();
    }

    private static double[] numbers(Map<String, Object> run, String name) {
        List<?> numbers = (List<?>) run.getOrDefault(name, List.of(Double.NaN));
        return numbers.stream().mapToDouble(each -> ((Number) each).doubleValue()).toArray();
    }

    private static double writtenByRecord(Map<String, Object> run) {
        return number(run, "storage_bytes_written") / number(run, "records");
    }

    private static double largest(double[] numbers) {
        return Arrays.stream(numbers).max().orElse(0);
    }

    static double median(double[] numbers) {
        double[] sorted = numbers.clone();
        Arrays.sort(sorted);
        int half = sorted.length / 2;
        if (sorted.length == 0) {
            return 0;
        }
        return sorted.length % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    }

    /** What was run, in words; runs of the same one belong into one table. */
    static String loadOf(Map<String, Object> run) {
        return String.format(
                Locale.ROOT,
                "`%s`%s, %,d keys, %s records a key and window, %s windows, %d MB",
                run.get("workload"),
                run.get("slots") == null ? "" : " in a cluster of " + run.get("slots") + " slots",
                ((Number) run.get("keys")).longValue(),
                run.get("per_key"),
                run.get("windows"),
                ((Number) run.get("memory_bytes")).longValue() >> 20);
    }

    static String of(List<Map<String, Object>> runs) {
        Map<String, List<Map<String, Object>>> byLoad = new LinkedHashMap<>();
        for (Map<String, Object> run : runs) {
            byLoad.computeIfAbsent(loadOf(run), none -> new ArrayList<>()).add(run);
        }
        StringBuilder text = new StringBuilder();
        byLoad.forEach((load, of) -> table(load, of, text));
        return text.toString();
    }

    private static void table(String load, List<Map<String, Object>> runs, StringBuilder text) {
        Map<Backend, List<Map<String, Object>>> byBackend = new TreeMap<>();
        Set<String> checksums = new LinkedHashSet<>();
        for (Map<String, Object> run : runs) {
            Backend backend = Backend.named((String) run.get("backend"));
            byBackend.computeIfAbsent(backend, none -> new ArrayList<>()).add(run);
            checksums.add(run.get("results") + " " + run.get("checksum"));
        }
        if (checksums.size() > 1) {
            throw new IllegalStateException(load + ": results differ: " + checksums);
        }
        int rounds = byBackend.values().stream().mapToInt(List::size).min().orElse(0);
        text.append(load).append(", ").append(rounds).append(rounds == 1 ? " round" : " rounds");
        text.append(":\n\n| |");
        byBackend.keySet().forEach(backend -> text.append(' ').append(backend.title()).append(" |"));
        text.append(" folddb to the best rocksdb |\n|---|").append("---|".repeat(byBackend.size() + 1));
        text.append('\n');
        ROWS.stream()
                .filter(row -> runs.stream().noneMatch(run -> Double.isNaN(row.of().applyAsDouble(run))))
                .forEach(row -> row(row, byBackend, text));
        text.append('\n');
    }

    private static void row(
            Row row, Map<Backend, List<Map<String, Object>>> byBackend, StringBuilder text) {
        Map<Backend, Double> medians = new TreeMap<>();
        text.append("| ").append(row.title()).append(" |");
        byBackend.forEach((backend, runs) -> {
            double[] all = runs.stream().mapToDouble(row.of()).toArray();
            medians.put(backend, median(all));
            text.append(' ').append(cell(all, row.hasRange())).append(" |");
        });
        text.append(' ').append(ratio(row, medians)).append(" |\n");
    }

    private static String cell(double[] all, boolean hasRange) {
        String middle = shown(median(all));
        if (!hasRange || all.length == 1) {
            return middle;
        }
        double[] sorted = all.clone();
        Arrays.sort(sorted);
        return middle + " (" + shown(sorted[0]) + "–" + shown(sorted[sorted.length - 1]) + ")";
    }

    private static String ratio(Row row, Map<Backend, Double> medians) {
        boolean isMoreBetter = row.better() == Better.MORE;
        OptionalDouble best = isMoreBetter ? rocks(medians).max() : rocks(medians).min();
        double ours = medians.getOrDefault(Backend.FOLDDB, 0.0);
        double theirs = best.orElse(0);
        if (row.better() == Better.NEITHER || ours == 0 || theirs == 0) {
            return "–";
        }
        return String.format(Locale.ROOT, "%.2fx", isMoreBetter ? ours / theirs : theirs / ours);
    }

    private static DoubleStream rocks(Map<Backend, Double> medians) {
        return medians.entrySet().stream()
                .filter(entry -> entry.getKey().isRocksDb())
                .mapToDouble(Map.Entry::getValue);
    }

    /** Three digits, as far as there are any. */
    private static String shown(double number) {
        if (number >= 1e6) {
            return String.format(Locale.ROOT, number >= 1e7 ? "%.1f M" : "%.2f M", number / 1e6);
        }
        if (number >= 1e4) {
            return String.format(Locale.ROOT, number >= 1e5 ? "%.0f K" : "%.1f K", number / 1e3);
        }
        boolean isWhole = number >= 100 || number == Math.rint(number);
        return String.format(Locale.ROOT, isWhole ? "%.0f" : number >= 10 ? "%.1f" : "%.2f", number);
    }
}
