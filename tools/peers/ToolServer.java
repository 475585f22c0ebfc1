import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs Kafka's tools one after another in one JVM, since starting a JVM costs more than most tools do.
 * A request on standard input: class name, arguments, standard input; the answer on standard output:
 * exit code, standard output, standard error. Every text and byte string is behind its length.
 */
public class ToolServer {
    /** Takes the place of the end of the JVM. */
    static final class Ended extends Error {
        Ended() {
            super(null, null, false, false);
        }
    }

    private static Integer code; // the first one counts, as in a JVM that really ends

    private static void end(int status, String message) {
        if (code == null) {
            code = status;
        }
        throw new Ended();
    }

    public static void main(String[] none) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
        Exit.setExitProcedure(ToolServer::end);
        Exit.setHaltProcedure(ToolServer::end);
        List<Runnable> hooks = new ArrayList<>();
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        while (true) {
            String tool;
            try {
                tool = text(in);
            } catch (EOFException e) {
                Runtime.getRuntime().halt(0);
                return;
            }
            String[] args = new String[in.readInt()];
            for (int i = 0; i < args.length; i++) {
                args[i] = text(in);
            }
            ByteArrayOutputStream stdout = new ByteArrayOutputStream(), stderr = new ByteArrayOutputStream();
            System.setIn(new ByteArrayInputStream(bytes(in)));
            System.setOut(new PrintStream(stdout, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(stderr, true, StandardCharsets.UTF_8));
            code = null;
            try {
                Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) args);
            } catch (InvocationTargetException e) {
                if (!(e.getCause() instanceof Ended)) {
                    e.getCause().printStackTrace();
                    code = 1;
                }
            }
            for (Runnable hook : hooks) {
                try {
                    hook.run();
                } catch (Ended e) {
                    // a hook cannot end anything
                }
            }
            hooks.clear();
            System.out.flush();
            System.err.flush();
            out.writeInt(code == null ? 0 : code);
            write(out, stdout.toByteArray());
            write(out, stderr.toByteArray());
            out.flush();
        }
    }

    private static byte[] bytes(DataInputStream in) throws Exception {
        byte[] b = new byte[in.readInt()];
        in.readFully(b);
        return b;
    }

    private static String text(DataInputStream in) throws Exception {
        return new String(bytes(in), StandardCharsets.UTF_8);
    }

    private static void write(DataOutputStream out, byte[] b) throws Exception {
        out.writeInt(b.length);
        out.write(b);
    }
}
