/**
 * A receiver of webhooks in six languages, each with the public library of Standard Webhooks for it
 * and nothing else that its language does not bring. The console and docs/samples.md show them.
 */

export interface Sample {
  readonly language: string;
  readonly file: string;
  /** How its library is installed. */
  readonly install: string;
  /** How it is started; the secret is in WEBHOOK_SECRET. */
  readonly start: string;
  readonly code: string;
}

const javascript = `import { createServer } from 'node:http';
import { Webhook } from 'standardwebhooks';

const webhook = new Webhook(process.env.WEBHOOK_SECRET);

createServer(async (request, response) => {
  // The body as it arrived, before anything parses it.
  const parts = [];
  for await (const part of request) parts.push(part);
  let event;
  try {
    event = webhook.verify(Buffer.concat(parts).toString(), request.headers);
  } catch {
    return response.writeHead(400).end();
  }
  // The same id may arrive twice.
  console.log(event.id, event.type);
  response.writeHead(204).end();
}).listen(Number(process.env.PORT ?? 3000));
`;

const python = `import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook

webhook = Webhook(os.environ["WEBHOOK_SECRET"])


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        # The body as it arrived, before anything parses it.
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            event = webhook.verify(body, dict(self.headers.items()))
        except Exception:  # also what the library raises for malformed headers
            self.send_response(400)
        else:
            # The same id may arrive twice.
            print(event["id"], event["type"], flush=True)
            self.send_response(204)
        self.end_headers()


port = int(os.environ.get("PORT", "3000"))
ThreadingHTTPServer(("", port), Handler).serve_forever()
`;

const go = `package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	webhook, err := standardwebhooks.NewWebhook(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		// The body as it arrived, before anything parses it.
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || webhook.Verify(body, r.Header) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var event struct{ ID, Type string }
		if json.Unmarshal(body, &event) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		// The same id may arrive twice.
		fmt.Println(event.ID, event.Type)
		w.WriteHeader(http.StatusNoContent)
	})
	port := os.Getenv("PORT")
	if port == "" {
		port = "3000"
	}
	log.Fatal(http.ListenAndServe(":"+port, nil))
}
`;

const ruby = `require "standardwebhooks"
require "webrick"

WEBHOOK = StandardWebhooks::Webhook.new(ENV.fetch("WEBHOOK_SECRET"))
NAMES = %w[webhook-id webhook-timestamp webhook-signature]
$stdout.sync = true

server = WEBrick::HTTPServer.new(Port: ENV.fetch("PORT", "3000").to_i)
server.mount_proc("/") do |request, response|
  # The body as it arrived, before anything parses it.
  headers = NAMES.to_h { |name| [name, request[name]] }
  event = WEBHOOK.verify(request.body.to_s, headers)
  # The same id may arrive twice.
  puts "#{event["id"]} #{event["type"]}"
  response.status = 204
rescue StandardError # also what the library raises for malformed headers
  response.status = 400
end
server.start
`;

const php = `<?php
require 'vendor/autoload.php';

$webhook = new StandardWebhooks\\Webhook(getenv('WEBHOOK_SECRET'));
$headers = array_change_key_case(getallheaders());
try {
    // The body as it arrived, before anything parses it.
    $event = $webhook->verify(file_get_contents('php://input'), $headers);
} catch (Throwable $error) { // also what the library raises for malformed headers
    http_response_code(400);
    exit;
}
// The same id may arrive twice.
error_log($event['id'] . ' ' . $event['type']);
http_response_code(204);
`;

const java = `import com.standardwebhooks.Webhook;
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

public class Receiver {
    public static void main(String[] args) throws Exception {
        Webhook webhook = new Webhook(System.getenv("WEBHOOK_SECRET"));
        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "3000"));
        HttpServer server = HttpServer.create(new InetSocketAddress(port), 0);
        server.createContext("/", exchange -> {
            // The body as it arrived, before anything parses it.
            byte[] bytes = exchange.getRequestBody().readAllBytes();
            String body = new String(bytes, StandardCharsets.UTF_8);
            Map<String, List<String>> headers = new HashMap<>();
            exchange.getRequestHeaders()
                    .forEach((name, all) -> headers.put(name.toLowerCase(), all));
            int status = 204;
            try {
                webhook.verify(body, headers);
                // The same id may arrive twice.
                System.out.println(headers.get("webhook-id").get(0) + " " + body);
            } catch (Exception refused) {
                status = 400;
            }
            exchange.sendResponseHeaders(status, -1);
            exchange.close();
        });
        server.start();
    }
}
`;

const MODULE = 'github.com/standard-webhooks/standard-webhooks/libraries';
const JAVA = 'com.standardwebhooks:standardwebhooks:1.2.0';

export const SAMPLES: readonly Sample[] = [
  {
    language: 'JavaScript',
    file: 'receiver.mjs',
    install: 'npm install standardwebhooks@1.1.1',
    start: 'node receiver.mjs',
    code: javascript,
  },
  {
    language: 'Python',
    file: 'receiver.py',
    install: 'pip install standardwebhooks==1.1.0',
    start: 'python3 receiver.py',
    code: python,
  },
  {
    language: 'Go',
    file: 'receiver.go',
    install: `go mod init receiver && go get ${MODULE}/go@v0.0.1`,
    start: 'go run .',
    code: go,
  },
  {
    language: 'Ruby',
    file: 'receiver.rb',
    install: 'gem install standardwebhooks:1.1.0 webrick',
    start: 'ruby receiver.rb',
    code: ruby,
  },
  {
    language: 'PHP',
    file: 'receiver.php',
    install: 'composer require standard-webhooks/standard-webhooks',
    start: 'php -S 0.0.0.0:3000 receiver.php',
    code: php,
  },
  {
    language: 'Java',
    file: 'Receiver.java',
    install: `mvn -q dependency:copy -Dartifact=${JAVA} -DoutputDirectory=.`,
    start: 'java -cp standardwebhooks-1.2.0.jar Receiver.java',
    code: java,
  },
];
