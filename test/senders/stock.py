# A service with OpenTelemetry's own Python SDK: continues the caller's trace, works, and answers.

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind

provider = TracerProvider(resource=Resource.create({"service.name": "stock"}))
exporter = OTLPSpanExporter(endpoint=sys.argv[1], compression=Compression.Gzip)
provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=100))
tracer = provider.get_tracer("stock.py", "1.0")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        attributes = {"http.request.method": "GET", "http.route": "/items/{id}", "http.response.status_code": 200}
        with tracer.start_as_current_span("GET /items/{id}", context=extract(self.headers), kind=SpanKind.SERVER, attributes=attributes):
            with tracer.start_as_current_span("count") as span:
                span.set_attribute("tags", ["a", "b"])
                try:
                    raise KeyError("shelf")
                except KeyError as error:
                    span.record_exception(error)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"3")

    def log_message(self, *args):
        pass


server = HTTPServer(("127.0.0.1", 0), Handler)
print(f"stock at http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
