# Decodes ExportLogsServiceRequests with OpenTelemetry's own package: a line of hex in, a line of JSON for each record out.

import json
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest


def value_of(value):
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [value_of(one) for one in value.array_value.values]
    if kind == "kvlist_value":
        return members_of(value.kvlist_value.values)
    return getattr(value, kind)


def members_of(members):
    keys = [member.key for member in members]
    assert len(keys) == len(set(keys)), keys
    return {member.key: value_of(member.value) for member in members}


for line in sys.stdin:
    request = ExportLogsServiceRequest()
    assert request.ParseFromString(bytes.fromhex(line)) == len(line.strip()) // 2
    for resource_logs in request.resource_logs:
        for scope_logs in resource_logs.scope_logs:
            for record in scope_logs.log_records:
                assert len(UnknownFieldSet(record)) == 0
                print(json.dumps({
                    "resource": members_of(resource_logs.resource.attributes),
                    "scope": scope_logs.scope.name,
                    "time": str(record.time_unix_nano),
                    "observedTime": str(record.observed_time_unix_nano),
                    "severityNumber": record.severity_number,
                    "severityText": record.severity_text,
                    "body": value_of(record.body),
                    "attributes": members_of(record.attributes),
                    "dropped": record.dropped_attributes_count,
                    "flags": record.flags,
                    "traceId": record.trace_id.hex(),
                    "spanId": record.span_id.hex(),
                }))
