package org.folddb.flink;

import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.base.MapSerializer;
import org.apache.flink.api.common.typeutils.base.MapSerializerSnapshot;
import org.apache.flink.runtime.state.RegisteredKeyValueStateBackendMetaInfo;
import org.apache.flink.util.StateMigrationException;

/** What migrating the rows of a state to another serializer cannot do. */
final class Migration {
    private Migration() {}

    /** Keys of a map are parts of the keys of rows, which stay as they are. */
    static void checkKeysOfMap(RegisteredKeyValueStateBackendMetaInfo<?, ?> meta)
            throws StateMigrationException {
        TypeSerializer<?> now = meta.getStateSerializer();
        TypeSerializerSnapshot<?> before = meta.getPreviousStateSerializerSnapshot();
        if (now instanceof MapSerializer && before instanceof MapSerializerSnapshot) {
            MapSerializerSnapshot<?, ?> maps = (MapSerializerSnapshot<?, ?>) before;
            if (!areSame(((MapSerializer<?, ?>) now).getKeySerializer(), maps.getKeySerializerSnapshot())) {
                throw new StateMigrationException(
                        "the new serializer of the keys of the map state "
                                + meta.getName()
                                + " would need its keys to be migrated; only the values of a map can be");
            }
        }
    }

    @SuppressWarnings("unchecked")
    private static <T> boolean areSame(TypeSerializer<T> now, TypeSerializerSnapshot<?> before) {
        return now.snapshotConfiguration()
                .resolveSchemaCompatibility((TypeSerializerSnapshot<T>) before)
                .isCompatibleAsIs();
    }
}
