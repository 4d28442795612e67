package org.folddb.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.base.IntSerializer;
import org.apache.flink.api.common.typeutils.base.LongSerializer;
import org.apache.flink.api.common.typeutils.base.MapSerializer;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.runtime.state.RegisteredKeyValueStateBackendMetaInfo;
import org.apache.flink.runtime.state.SerializedCompositeKeyBuilder;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.junit.jupiter.api.Test;

/** Keys of rows in both orders, against Flink's own. */
class RowOrderTest {
    private static final TimeWindow WINDOW = new TimeWindow(60_000, 120_000);

    private static RegisteredKeyValueStateBackendMetaInfo<?, ?> meta(
            StateDescriptor.Type type, TypeSerializer<?> namespaces, TypeSerializer<?> values) {
        return new RegisteredKeyValueStateBackendMetaInfo<>(type, "state", namespaces, values);
    }

    private static <K, N> void check(
            K key, TypeSerializer<K> keys, N namespace, TypeSerializer<N> namespaces) throws IOException {
        for (int groupBytes = 1; groupBytes <= 2; groupBytes++) {
            SerializedCompositeKeyBuilder<K> flinks =
                    new SerializedCompositeKeyBuilder<>(keys, groupBytes, 32);
            flinks.setKeyAndKeyGroup(key, 77);
            RowKeys<K> ours = new RowKeys<>(keys, groupBytes);
            ours.setKey(key, 77);
            checkRow(
                    flinks.buildCompositeKeyNamespace(namespace, namespaces),
                    ours.of(RowOrder.KEY_FIRST, namespace, namespaces),
                    ours.of(RowOrder.NAMESPACE_FIRST, namespace, namespaces),
                    new RowKeyParts<>(
                            keys,
                            meta(StateDescriptor.Type.VALUE, namespaces, LongSerializer.INSTANCE),
                            groupBytes),
                    List.of(key, namespace));
            checkRow(
                    flinks.buildCompositeKeyNamesSpaceUserKey(
                            namespace, namespaces, "in the map", StringSerializer.INSTANCE),
                    ours.of(RowOrder.KEY_FIRST, namespace, namespaces, "in the map", StringSerializer.INSTANCE),
                    ours.of(
                            RowOrder.NAMESPACE_FIRST,
                            namespace,
                            namespaces,
                            "in the map",
                            StringSerializer.INSTANCE),
                    new RowKeyParts<>(
                            keys,
                            meta(
                                    StateDescriptor.Type.MAP,
                                    namespaces,
                                    new MapSerializer<>(StringSerializer.INSTANCE, LongSerializer.INSTANCE)),
                            groupBytes),
                    List.of(key, namespace));
        }
    }

    private static void checkRow(
            byte[] flinks, byte[] keyFirst, byte[] namespaceFirst, RowKeyParts<?> parts, List<?> of)
            throws IOException {
        assertArrayEquals(flinks, keyFirst);
        assertArrayEquals(
                flinks, parts.translated(namespaceFirst, RowOrder.NAMESPACE_FIRST, RowOrder.KEY_FIRST));
        assertArrayEquals(
                namespaceFirst, parts.translated(flinks, RowOrder.KEY_FIRST, RowOrder.NAMESPACE_FIRST));
        parts.read(flinks, RowOrder.KEY_FIRST);
        assertEquals(of, List.of(parts.key(), parts.namespace()));
        parts.read(namespaceFirst, RowOrder.NAMESPACE_FIRST);
        assertEquals(of, List.of(parts.key(), parts.namespace()));
    }

    @Test
    void eachOrderIsMadeOfTheOther() throws IOException {
        check(5, IntSerializer.INSTANCE, WINDOW, new TimeWindow.Serializer());
        check("five", StringSerializer.INSTANCE, WINDOW, new TimeWindow.Serializer());
        check(5L, LongSerializer.INSTANCE, "namespace", StringSerializer.INSTANCE);
        check("x".repeat(300), StringSerializer.INSTANCE, "namespace", StringSerializer.INSTANCE);
        check("", StringSerializer.INSTANCE, "n".repeat(70_000), StringSerializer.INSTANCE);
    }

    @Test
    void rowsOfAWindowLieTogetherInTheOrderOfTime() {
        byte[][] rows = new byte[40][];
        for (int at = 0; at < rows.length; at++) {
            RowKeys<Integer> keys = new RowKeys<>(IntSerializer.INSTANCE, 1);
            keys.setKey(1_000_000_007 * at, 3);
            long start = at / 10 * 60_000L;
            rows[at] =
                    keys.of(
                            RowOrder.NAMESPACE_FIRST,
                            new TimeWindow(start, start + 60_000),
                            new TimeWindow.Serializer());
        }
        for (int at = 10; at < rows.length; at++) {
            assertTrue(Arrays.compareUnsigned(rows[at - at % 10 - 1], rows[at]) < 0);
        }
    }

    @Test
    void oneNamespaceNeedsNoTranslation() {
        LongSerializer values = LongSerializer.INSTANCE;
        StateDescriptor.Type type = StateDescriptor.Type.VALUE;
        assertEquals(
                RowOrder.KEY_FIRST, RowOrder.of(meta(type, VoidNamespaceSerializer.INSTANCE, values)));
        assertEquals(
                RowOrder.NAMESPACE_FIRST, RowOrder.of(meta(type, new TimeWindow.Serializer(), values)));
        assertEquals(16, RowOrder.lengthOf(new TimeWindow.Serializer()));
        assertEquals(8, RowOrder.lengthOf(LongSerializer.INSTANCE));
        assertEquals(-1, RowOrder.lengthOf(StringSerializer.INSTANCE));
    }
}
