// The JDK's own server with a pool of four: /?n=N answers with N rows as JSON.
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

public class Work {
    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 0);
        server.createContext("/", exchange -> {
            int count = Integer.parseInt(exchange.getRequestURI().getQuery().substring(2));
            StringBuilder rows = new StringBuilder();
            for (int i = 0; i < count; i++) rows.append("{\"id\":").append(i).append(",\"name\":\"n").append(i).append("\"},");
            byte[] body = rows.toString().getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.start();
    }
}
