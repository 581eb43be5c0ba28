import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/** A web service whose requests take CPU time: WORK times 50,000 steps of a hash. */
public class Server {
    static long hash(int steps) {
        long sum = 0xcbf29ce484222325L;
        for (int step = 0; step < steps; step++) {
            sum = (sum ^ (step & 255)) * 1099511628211L;
        }
        return sum;
    }

    public static void main(String[] args) throws IOException {
        if (args.length != 1) {
            System.err.println("usage: Server PORT");
            System.exit(2);
        }
        // Without it an answer waits up to 40 ms for the client's acknowledgement of its head.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        int work = Integer.parseInt(System.getenv().getOrDefault("WORK", "1"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 1024);
        server.createContext("/", exchange -> {
            byte[] body = (Long.toHexString(hash(work * 50_000)) + "\n").getBytes(StandardCharsets.US_ASCII);
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(Runtime.getRuntime().availableProcessors()));
        server.start();
    }
}
