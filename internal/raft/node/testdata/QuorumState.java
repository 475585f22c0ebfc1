import java.io.File;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.raft.*;
import org.apache.kafka.raft.ElectionState;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.common.Uuid;
/** Reads each quorum-state file, prints epoch, leader and vote, and writes the same state beside it. */
public class QuorumState {
    public static void main(String[] args) throws Exception {
        for (String path : args) {
            FileQuorumStateStore store = new FileQuorumStateStore(new File(path));
            ElectionState s = store.readElectionState().get();
            System.out.println(s.epoch() + " " + s.leaderIdOrSentinel() + " " + s.optionalVotedKey().map(k -> k.id() + "/" + k.directoryId().map(Uuid::toString).orElse("-")).orElse("none"));
            KRaftVersion v = path.endsWith("0") ? KRaftVersion.KRAFT_VERSION_0 : KRaftVersion.KRAFT_VERSION_1;
            new FileQuorumStateStore(new File(path + ".kafka")).writeElectionState(s, v);
        }
    }
}
