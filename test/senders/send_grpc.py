# Sends a trace and a log line over gRPC with OpenTelemetry's own Python SDK. Arguments: endpoint, compression (none or gzip).

import logging
import sys

from grpc import Compression
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind

compression = {"none": Compression.NoCompression, "gzip": Compression.Gzip}[sys.argv[2]]
to = {"endpoint": sys.argv[1], "insecure": True, "compression": compression}
resource = Resource.create({"service.name": "stock"})
provider = TracerProvider(resource=resource)
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(**to)))
loggers = LoggerProvider(resource=resource)
loggers.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(**to)))
logger = logging.getLogger("stock")
logger.addHandler(LoggingHandler(logger_provider=loggers))
tracer = provider.get_tracer("stock", "1.0")

attributes = {"http.request.method": "GET", "http.route": "/items/{id}", "http.response.status_code": 200}
with tracer.start_as_current_span("GET /items/{id}", kind=SpanKind.SERVER, attributes=attributes):
    with tracer.start_as_current_span("count") as span:
        span.set_attribute("tags", ["a", "b"])
        logger.warning("no stock")

provider.shutdown()
loggers.shutdown()
