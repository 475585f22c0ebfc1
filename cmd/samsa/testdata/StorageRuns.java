import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;

/**
 * Runs Apache Kafka's storage tool many times in one virtual machine. Standard input holds one run
 * per line, its arguments separated by the unit separator (U+001F). For each run one line
 * goes out: exit code, standard output and standard error, the last two in base64, separated by blanks.
 */
public class StorageRuns {
    public static void main(String[] none) throws Exception {
        PrintStream realOut = System.out;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            String[] args = line.split("\u001f", -1);
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream err = new ByteArrayOutputStream();
            PrintStream outStream = new PrintStream(out, true, "UTF-8");
            System.setOut(outStream);
            System.setErr(new PrintStream(err, true, "UTF-8"));
            int code;
            try {
                code = kafka.tools.StorageTool.execute(args, outStream);
            } catch (Throwable e) {
                code = 1;
                System.err.println(e.getMessage());
            }
            System.out.flush();
            System.err.flush();
            Base64.Encoder b64 = Base64.getEncoder();
            realOut.println(code + " " + b64.encodeToString(out.toByteArray()) + " " + b64.encodeToString(err.toByteArray()));
        }
        realOut.flush();
        System.exit(0);
    }
}
