// Sends one trace over gRPC with OpenTelemetry's own Go SDK. Arguments: host:port, and the compression or nothing.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	options := []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(os.Args[1]), otlptracegrpc.WithInsecure()}
	if len(os.Args) > 2 {
		options = append(options, otlptracegrpc.WithCompressor(os.Args[2]))
	}
	exporter, err := otlptracegrpc.New(ctx, options...)
	if err != nil {
		log.Fatal(err)
	}
	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(exporter),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "stock-go"))),
	)
	tracer := provider.Tracer("main.go", trace.WithInstrumentationVersion("1.0"))
	inside, request := tracer.Start(ctx, "GET /items/{id}", trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", "GET"),
		attribute.String("http.route", "/items/{id}"),
		attribute.Int("http.response.status_code", 500),
	))
	_, count := tracer.Start(inside, "count", trace.WithAttributes(attribute.StringSlice("tags", []string{"a", "b"})))
	count.End()
	request.SetStatus(codes.Error, "the shelf is gone")
	request.End()
	if err := provider.ForceFlush(ctx); err != nil {
		log.Fatal(err)
	}
	if err := provider.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
}
